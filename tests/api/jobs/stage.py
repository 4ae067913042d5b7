"""A daemon of the parts that jobs need: a real store, the real core and its pump, the listener. No drivers:
the test says what they would report.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from nodeagent.api.access.credentials import Caller, Role
from nodeagent.api.control.audit import AuditLog
from nodeagent.api.jobs.listener import JobListener
from nodeagent.config.sections import JobsConfig
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    ActiveCode,
    ActiveSet,
    Assertion,
    CatalogChanged,
    Claims,
    DeviceView,
    Event,
    EventKind,
    Holder,
    Input,
    JobView,
    Outcome,
    ProcessesListed,
    Signal,
    SourceBack,
    Started,
)
from nodeagent.daemon.clock import carry_on
from nodeagent.daemon.pump import Pump
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from tests.core.build import seen
from tests.core.resets.ring import BROKEN, ring_catalog
from tests.store.samples import PATIENT
from tests.waiting import until

CHIPS = ("npu0", "npu1")
OPERATOR = Caller(identity="uid:0", role=Role.OPERATOR, who="uid 0", is_operator=True)


class DoorStage:
    """``readings`` are what drivers read last, by device."""

    def __init__(self, folder: Path, config: JobsConfig, catalog: Catalog) -> None:
        self.socket = folder / "jobs.sock"
        self.ledger = Ledger(folder / "state", "machine-a", limits=PATIENT)
        self.feed = EventFeed()
        self.readings: dict[str, Mapping[str, float]] = {}
        self._config = config
        self._catalog = catalog

    async def open(self) -> None:
        recovery = await self.ledger.open()
        engine = Engine({self._catalog.digest: self._catalog})
        clock = carry_on(recovery.anchor, "boot-1")
        self.pump = Pump(engine, self.ledger, self.feed, clock, lambda: None)
        now_ns = clock.rule_ns()
        began: tuple[Input, ...] = (
            Started(boot_id="boot-1", version="test"),
            CatalogChanged(digest=self._catalog.digest),
            *(seen(chip) for chip in CHIPS),
            SourceBack(source="ascend"),
            *(
                ActiveSet(source="ascend", device=chip, codes=(), begun_ns=now_ns, complete=True)
                for chip in CHIPS
            ),
        )
        await self.pump.begin(Outcome(), began)
        self.listener = JobListener(
            path=self.socket,
            feed=self.feed,
            ask=self.pump.ask,
            readings=lambda: self.readings,
            audit=AuditLog(self.ledger),
            config=self._config,
            version="0.1.0",
            consumer=self.ledger.consumer,
            resets=lambda: self._catalog.settings.reset,
        )
        self.listener.open()

    async def do(self, *inputs: Input) -> None:
        """Committed and shown when it returns."""
        await self.pump.ask(*inputs)

    async def hold(self, chip: str, *holders: Holder) -> None:
        await self.do(ProcessesListed(device=chip, holders=holders))

    async def breaks(self, chip: str) -> None:
        """It needs a reset, which a poll confirms."""
        await self.do(Signal(source="ascend", device=chip, code=BROKEN, assertion=Assertion.OCCUR))
        (reset,) = self.feed.current.view.resets
        shown = (ActiveCode(code=BROKEN),)
        begun_ns = reset.proposed_ns
        await self.do(ActiveSet(source="ascend", device=chip, codes=shown, begun_ns=begun_ns, complete=False))

    async def claim(self, job: str, *chips: str) -> None:
        await self.do(*(Claims(device=chip, job=job, kind="training", claimed=True) for chip in chips))

    def device(self, name: str) -> DeviceView:
        return next(each for each in self.feed.current.view.devices if each.name == name)

    @property
    def jobs(self) -> Mapping[str, JobView]:
        return {job.name: job for job in self.feed.current.view.jobs}

    def chips_of(self, job: str) -> set[str]:
        ids = self.jobs[job].devices
        return {each.name for each in self.feed.current.view.devices if each.id in ids}

    async def job(self, name: str, **how: object) -> JobView:
        """Once it is so."""

        def found() -> JobView | None:
            job = self.jobs.get(name)
            return job if job and all(getattr(job, key) == value for key, value in how.items()) else None

        job = await until(found, f"{name} {how}; there is {self.jobs.get(name)}")
        assert job is not None
        return job

    async def comes(self, found: Callable[[], object], what: str) -> None:
        await until(found, f"{what}; there is {self.feed.current.view.conditions}")

    def events(self, kind: EventKind) -> Sequence[Event]:
        stored = self.feed.recent(0)
        assert stored is not None
        return [each.event for each in stored if each.event.kind is kind]


@asynccontextmanager
async def staged(
    folder: Path, config: JobsConfig | None = None, catalog: Catalog | None = None
) -> AsyncIterator[DoorStage]:
    stage = DoorStage(folder, config or JobsConfig(), catalog or ring_catalog())
    async with AsyncExitStack() as left:
        await stage.open()
        left.push_async_callback(stage.ledger.close)
        tasks = [asyncio.create_task(stage.pump.run()), asyncio.create_task(stage.listener.run())]
        try:
            yield stage
        finally:
            await stage.listener.close()
            stage.pump.finish()
            tasks[1].cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert ended[0] is None
