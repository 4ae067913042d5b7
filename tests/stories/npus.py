"""The real daemon over eight emulated NPUs, with a subscriber, for the stories of that driver.

It knows where the daemon finds the vendor's library, how patient it is, and what its metrics and the
kernel say of it; which faults there are and what becomes of them is the story's.
"""

import asyncio
import contextlib
import re
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from prometheus_client.parser import text_string_to_metric_families

from nodeagent.client import AsyncClient, Device, Event, EventKind, Snapshot
from nodeagent.emulator.node import EmulatedNode
from tests.harness.configuration import ROOT
from tests.harness.daemon import Daemon, free_port
from tests.harness.kernel_log import FakeKernelLog
from tests.harness.metrics import scraped
from tests.harness.subscriber import Subscriber

CHIPS = tuple(f"npu{number}" for number in range(8))
POLLED = "dcmi_get_device_health"
"""Called once in each poll of a chip."""

TABLE = "ascend.toml"
UNRESPONSIVE = "driver_unresponsive"
DEVICE_LOST = "device_lost"
CRASHED = "worker_crashed.ascend"

_PENDING = re.compile(r"^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)$", re.MULTILINE)
_OF_FAULTS = (EventKind.RAISED, EventKind.CLEARED)

Wanted = TypeVar("Wanted")


@dataclass(kw_only=True)
class Npus:
    """``library`` and ``sysfs`` are where the daemon looks, ``tables`` the shipped ones that it has and
    ``sections`` more lines of its configuration; change them and the next start does.
    """

    node: EmulatedNode
    daemon: Daemon
    subscriber: Subscriber
    log: FakeKernelLog
    library: Path
    sysfs: Path
    poll_interval: str = "200ms"
    call_deadline: str = "2s"
    tables: Sequence[str] = (TABLE,)
    sections: Sequence[str] = ()

    async def start(self) -> None:
        """Start the daemon and follow it, for the first time or on from where it ended.

        The first time it gets all that was emitted, so that nothing of a source that starts is missed.
        """
        for table in self.tables:
            shutil.copyfile(ROOT / "fault_codes" / table, self.daemon.tables / table)
        patience = (f'poll_interval = "{self.poll_interval}"', f'call_deadline = "{self.call_deadline}"')
        self.daemon.kmsg = (
            *patience,
            "[drivers.ascend]",
            f'library = "{self.library}"',
            f'sysfs = "{self.sysfs}"',
            *patience,
            *self.sections,
        )
        await self.daemon.start()
        if self.subscriber.position is None:
            await self.subscriber.begin_with_the_first_event()
        await self.subscriber.follow()

    async def kill(self) -> None:
        await self.subscriber.leave()
        await self.daemon.kill()

    async def stop(self) -> None:
        await self.subscriber.leave()
        assert await self.daemon.stop() == 0, self.daemon.log

    # --- what is emitted ---

    @property
    def events(self) -> list[Event]:
        return self.subscriber.events

    @property
    def heard(self) -> int:
        """How much was received so far: what comes later comes ``after`` it."""
        return len(self.subscriber.received)

    def events_after(self, heard: int) -> list[Event]:
        return [update for update in self.subscriber.received[heard:] if isinstance(update, Event)]

    async def emitted(self, kind: EventKind, code: str, device: str = "", *, after: int = 0) -> Event:
        return await self.subscriber.event(kind, code, device, after)

    async def raised(self, device: str, code: str, *, after: int = 0) -> Event:
        return await self.emitted(EventKind.RAISED, code, device, after=after)

    async def cleared(self, device: str, code: str, *, after: int = 0) -> Event:
        return await self.emitted(EventKind.CLEARED, code, device, after=after)

    def course(self, code: str, device: str = "") -> list[str]:
        """The raised and cleared of a code, in order; of every device with its name."""
        found = [event for event in self.events if event.code == code and event.kind in _OF_FAULTS]
        if device:
            return [event.kind.value for event in found if event.device == device]
        return [f"{event.device} {event.kind.value}" for event in found]

    # --- how it stands ---

    async def snapshot(self) -> Snapshot:
        """The state as a new subscriber gets it."""
        async with AsyncClient(self.daemon.socket) as client:
            async for update in client.watch():
                if isinstance(update, Snapshot):
                    return update
        raise AssertionError("the stream ended")

    async def devices(self) -> dict[str, Device]:
        return {device.name: device for device in (await self.snapshot()).devices}

    async def unobserved(self) -> set[str]:
        """The chips that are not observed, and so UNKNOWN where nothing is worse."""
        return {name for name, device in (await self.devices()).items() if not device.observed} - {"node"}

    async def observed(self, *but: str) -> None:
        """Wait until every chip is observed, save these, and only these are not."""

        async def found() -> bool:
            devices = await self.devices()
            seen = {name for name in CHIPS if name in devices and devices[name].observed}
            return seen == {*CHIPS} - {*but}

        await self.daemon.comes(found, f"all observed but {but}")

    async def listening(self) -> None:
        """Wait until every chip is observed, and the library reports events: none is reported twice."""

        async def found() -> bool:
            return (await self.metrics()).get('nodeagent_source_subscribed{source="ascend"}') == 1

        await self.observed()
        await self.daemon.comes(found, "a subscription")

    async def open_on(self, device: str) -> set[str]:
        """The codes that stand."""
        return {each.code for each in (await self.snapshot()).conditions if each.device == device}

    async def metrics(self) -> dict[str, float]:
        """Each series as it is written, such as ``nodeagent_source_polls_total{source="ascend"}``."""
        return await asyncio.to_thread(_scrape, self.daemon.metrics)

    async def of_source(self, name: str, source: str = "ascend") -> float:
        return (await self.metrics())[f'nodeagent_source_{name}{{source="{source}"}}']

    def workers(self) -> list[int]:
        """The pids of the driver's workers that there are."""
        return self.daemon.workers("ascend")

    async def polled(self, device: str, times: int) -> None:
        """So many further polls of the chip."""
        wanted = self.node.calls(POLLED, device) + times
        await self.daemon.comes(lambda: self.node.calls(POLLED, device) >= wanted, f"polls of {device}")


def eight_npus(folder: Path) -> AbstractAsyncContextManager[Npus]:
    return emulated_npus(folder, "8x910B")


@asynccontextmanager
async def emulated_npus(folder: Path, description: str) -> AsyncIterator[Npus]:
    """Not started yet. At the end whatever hangs is let go, and the daemon killed."""
    with ExitStack() as left:
        node = left.enter_context(EmulatedNode.create(folder / "npus", description))
        log = FakeKernelLog(folder)
        left.callback(log.close)
        daemon = Daemon(folder=folder, kernel_log=log.path, metrics=f"127.0.0.1:{free_port()}")
        daemon.configure()
        (daemon.tables / "story.toml").write_text(log.table)
        subscriber = Subscriber(daemon)
        npus = Npus(
            node=node, daemon=daemon, subscriber=subscriber, log=log, library=node.dcmi, sysfs=node.sysfs
        )
        try:
            yield npus
        finally:
            node.release()
            await subscriber.leave()
            if daemon.process is not None:
                await daemon.kill()


def pending_signals(pid: int) -> set[int]:
    """The masks of signals that were sent to the process or to a thread of it and not taken yet."""
    return {mask for task in tasks(pid) for mask in _masks(task / "status") if mask}


def tasks(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").iterdir())


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def resident_bytes(pid: int) -> int:
    """Of the process itself, without what it shares with files."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kilobytes,) = re.findall(r"^RssAnon:\s+(\d+) kB$", status, re.MULTILINE)
    return int(kilobytes) * 1024


def _masks(status: Path) -> Iterator[int]:
    with contextlib.suppress(FileNotFoundError):
        yield from (int(mask, 16) for mask in _PENDING.findall(status.read_text()))


def _scrape(address: str) -> dict[str, float]:
    return {
        sample.name + _labels(sample.labels): sample.value
        for family in text_string_to_metric_families(scraped(address))
        for sample in family.samples
    }


def _labels(labels: dict[str, str]) -> str:
    return (
        "{" + ",".join(f'{name}="{value}"' for name, value in sorted(labels.items())) + "}" if labels else ""
    )
