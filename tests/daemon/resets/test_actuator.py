"""What the daemon makes of what a reset left: a result, a living process, a request, or nothing."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from nodeagent.config.config import Config
from nodeagent.config.load import load_config
from nodeagent.core.model import (
    ActionResult,
    ActionState,
    Event,
    Hold,
    HoldKind,
    Input,
    ResetStage,
    View,
)
from nodeagent.daemon.clock import Clock
from nodeagent.daemon.resets.actuator import Actuator
from nodeagent.daemon.resets.exchange import RequestBuilder, attempt_of, came_meanwhile
from nodeagent.daemon.sources.supervisor import SourceSupervisor
from nodeagent.reset_unit.exchange.requests import (
    RequestedDevice,
    RequestFolder,
    ResetRequest,
    ResetResult,
    name_of,
)
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Publication, StoreId
from tests.daemon.resets.samples import ID, action, device, view
from tests.daemon.staged import fake, staged
from tests.store.samples import PATIENT

NAME = name_of(ID, 1)
NO_SOURCES: Mapping[str, SourceSupervisor] = MappingProxyType({})


class ActuatorStage:
    """An actuator with a store and a board of its own; ``results`` is what it gave to the core."""

    def __init__(
        self,
        folder: Path,
        config: Config,
        ledger: Ledger,
        sources: Mapping[str, SourceSupervisor] = NO_SOURCES,
    ) -> None:
        self.folder = RequestFolder(folder / "reset")
        self.folder.make()
        self.feed = EventFeed()
        self.results: list[ActionResult] = []
        self.arrived = asyncio.Event()
        clock = Clock(boot_id="boot", offset_ns=0)
        self.actuator = Actuator(config, clock, self.feed, ledger, self.ask, sources)

    async def ask(self, given: Input) -> tuple[Event, ...]:
        assert isinstance(given, ActionResult)
        self.results.append(given)
        self.arrived.set()
        return ()

    def show(self, shown: View, durable: bool = True) -> None:
        self.feed.publish(
            Publication(
                view=shown, store_id=StoreId(uuid="u", epoch=0), seq=0, durable=durable, wall_offset_ns=0
            )
        )

    async def result(self) -> ActionResult:
        async with asyncio.timeout(60):
            await self.arrived.wait()
        return self.results[0]


@contextlib.asynccontextmanager
async def acting_stage(
    tmp_path: Path, sources: Mapping[str, SourceSupervisor] = NO_SOURCES
) -> AsyncIterator[ActuatorStage]:
    (tmp_path / "c.toml").write_text(
        f'[agent]\nstate_dir = "{tmp_path}/state"\n[reset]\nmode = "on"\nallow_volatile_store = true\n'
        f'run_dir = "{tmp_path}/reset"\ndo_not_touch = "{tmp_path}/do-not-touch"\n'
    )
    ledger = Ledger(tmp_path / "state", "machine", limits=PATIENT)
    await ledger.open()
    stage = ActuatorStage(tmp_path, load_config(tmp_path / "c.toml", {}), ledger, sources)
    task = asyncio.create_task(stage.actuator.run())
    yield stage
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await ledger.close()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[ActuatorStage]:
    async with acting_stage(tmp_path) as stage:
        yield stage


def request() -> ResetRequest:
    devices = (RequestedDevice(name="npu0", identity="die0"),)
    return ResetRequest(action=ID, attempt=1, vendor="ascend", devices=devices, deadline_ns=2**62)


DONE = ResetResult(state="done", reason="well")


async def test_a_result_that_lies_there_at_the_start_is_told(stage: ActuatorStage) -> None:
    stage.folder.answer(NAME, DONE)
    stage.actuator.adopt(view())
    result = await stage.result()
    assert result == ActionResult(action_id=ID, attempt=1, state=ActionState.DONE, reason="well")


@pytest.mark.parametrize("durable", [True, False])
async def test_a_result_is_kept_as_long_as_only_memory_holds_it(stage: ActuatorStage, durable: bool) -> None:
    stage.show(view(), durable)
    stage.folder.answer(NAME, DONE)
    stage.actuator.adopt(view())
    await stage.result()
    for _ in range(10):
        await asyncio.sleep(0)
    assert (stage.folder.result(NAME) is None) is durable


async def test_one_whose_process_lives_is_waited_for(
    stage: ActuatorStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = asyncio.Semaphore(0)
    ended = Actuator._ended

    def ended_and_noted(self: Actuator, name: str, not_begun: ActionState) -> tuple[ActionState, str] | None:
        looked.release()
        return ended(self, name, not_begun)

    monkeypatch.setattr(Actuator, "_ended", ended_and_noted)
    with stage.folder.locked(NAME):
        stage.actuator.adopt(view())
        async with asyncio.timeout(20):
            await looked.acquire()
            await looked.acquire()
        assert stage.results == []
        stage.folder.answer(NAME, DONE)
    assert (await stage.result()).state is ActionState.DONE


def test_a_job_that_comes_meanwhile_calls_a_reset_off_one_that_was_to_be_ended_does_not() -> None:
    ended_first, other = ("slurm:1", ""), ("slurm:9", "training")
    before = replace(view(), devices=(replace(device(), claims=(ended_first,)),))
    attempt = attempt_of(before, before.resets[0])
    assert came_meanwhile(attempt, before) == ""
    after = replace(before, devices=(replace(device(), claims=(ended_first, other)),))
    assert came_meanwhile(attempt, after) == "npu0 is claimed by the training slurm:9"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (HoldKind.QUIESCE, "quiesced by uid:0: upgrade"),
        (HoldKind.ISOLATION, "isolated by uid:0: upgrade"),
        (HoldKind.RESET_PENDING, ""),
    ],
)
def test_what_a_person_orders_meanwhile_calls_a_reset_off(kind: HoldKind, said: str) -> None:
    hold = Hold(id="h", device_id="die0", owner="uid:0", reason="upgrade", since_ns=0, kind=kind)
    shown = view()
    assert came_meanwhile(attempt_of(shown, shown.resets[0]), replace(shown, holds=(hold,))) == said


async def test_switching_resets_off_calls_off_what_gets_ready(
    stage: ActuatorStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called_off: asyncio.Queue[str] = asyncio.Queue()
    monkeypatch.setattr(RequestFolder, "call_off", lambda _, _name, why: called_off.put_nowait(why))
    (tmp_path / "d.toml").write_text(
        '[reset]\nmode = "on"\nallow_volatile_store = true\nmodes.ascend = "off"\n'
    )
    with stage.folder.locked(NAME):
        stage.actuator.adopt(view())
        stage.actuator.reload(load_config(tmp_path / "d.toml", {}))
        async with asyncio.timeout(20):
            assert await called_off.get() == "the mode of resets is off now"


async def test_one_that_left_nothing_was_interrupted(stage: ActuatorStage) -> None:
    stage.actuator.adopt(view())
    result = await stage.result()
    assert (result.state, result.reason) == (ActionState.INTERRUPTED, "it left no result")


async def test_a_request_that_nobody_began_is_withdrawn_so_that_nobody_ever_does(
    stage: ActuatorStage,
) -> None:
    stage.folder.ask(request())
    stage.actuator.adopt(view())
    result = await stage.result()
    assert (result.state, result.reason) == (
        ActionState.INTERRUPTED,
        "its process did not start in time",
    )
    assert stage.folder.begin(NAME) is None


async def test_a_result_that_cannot_be_read_is_none(stage: ActuatorStage) -> None:
    (stage.folder.path / f"{NAME}.result").write_text("{")
    stage.actuator.adopt(view())
    result = await stage.result()
    assert result.state is ActionState.INTERRUPTED
    assert result.reason.startswith("its result cannot be read: ")


async def test_what_earlier_resets_left_is_cleared_away_but_for_those_that_still_run(
    stage: ActuatorStage,
) -> None:
    old, stuck = name_of("die1/reset#7", 1), name_of("die2/reset#1", 2)
    stage.folder.answer(old, DONE)
    with stage.folder.locked(stuck):
        stage.actuator.adopt(view(stage=ResetStage.ENDED))
        assert stage.folder.names() == [stuck]


async def test_a_folder_that_others_may_write_is_not_believed_and_stops_no_start(
    stage: ActuatorStage,
) -> None:
    stage.folder.answer(NAME, DONE)
    stage.folder.path.chmod(0o777)
    stage.actuator.adopt(view())
    result = await stage.result()
    assert result.state is ActionState.INTERRUPTED
    assert result.reason.startswith(
        f"its result cannot be read: {stage.folder.path} can be written by others"
    )


async def test_without_a_durable_commit_nothing_is_done(stage: ActuatorStage) -> None:
    stage.show(view())
    stage.actuator.act(action(), durable=False)
    result = await stage.result()
    assert (result.state, result.reason) == (ActionState.REFUSED, "the store is not durable")
    assert stage.folder.names() == []


async def test_a_device_that_nobody_can_reset_is_told_so(stage: ActuatorStage) -> None:
    stage.show(view(vendor="acme"))
    stage.actuator.act(action(), durable=True)
    result = await stage.result()
    assert (result.state, result.reason) == (
        ActionState.REFUSED,
        "nodeagent cannot reset a device of acme",
    )


async def test_what_forbids_resets_is_looked_at_right_before(stage: ActuatorStage, tmp_path: Path) -> None:
    (tmp_path / "do-not-touch").touch()
    stage.show(view())
    stage.actuator.act(action(), durable=True)
    result = await stage.result()
    assert (result.state, result.reason) == (
        ActionState.REFUSED,
        f"resets are forbidden: {tmp_path}/do-not-touch is there",
    )


async def test_what_is_no_longer_the_attempt_that_runs_is_not_begun(stage: ActuatorStage) -> None:
    stage.show(view())
    stage.actuator.act(action(attempt=2), durable=True)
    stage.actuator.act(action(), durable=False)
    assert (await stage.result()).attempt == 1
    assert len(stage.results) == 1
    assert stage.folder.names() == []


async def test_a_process_that_does_not_begin_in_time_has_done_nothing(
    stage: ActuatorStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody_starts(folder: Path, name: str, config_path: Path | None) -> None:
        """As systemd, whose queue is stuck."""

    monkeypatch.setattr("nodeagent.daemon.resets.actuator.start", nobody_starts)
    monkeypatch.setattr("nodeagent.daemon.resets.actuator.START_LIMIT_S", 0.5)
    stage.show(view())
    stage.actuator.act(action(), durable=True)
    result = await stage.result()
    assert (result.state, result.reason) == (ActionState.REFUSED, "its process did not start in time")


async def test_whatever_keeps_a_reset_from_being_begun_its_devices_are_asked_again(
    tmp_path: Path, control: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> ResetRequest:
        raise RuntimeError("a bug")

    monkeypatch.setattr(RequestBuilder, "request", broken)
    async with staged(fake(control)) as stage, acting_stage(tmp_path, {"ascend": stage.supervisor}) as acting:
        await stage.back()
        acting.show(view(name="chip1"))
        acting.actuator.act(action(), durable=True)
        await stage.lost("chip1")
        result = await acting.result()
        assert (result.state, result.reason) == (ActionState.REFUSED, "it could not be started: a bug")
        await stage.polled("chip1")


async def test_a_reload_of_what_forbids_resets_is_in_force_at_once(
    stage: ActuatorStage, tmp_path: Path
) -> None:
    (tmp_path / "maintenance").touch()
    (tmp_path / "d.toml").write_text(f'[reset]\ndo_not_touch = "{tmp_path}/maintenance"\n')
    stage.actuator.reload(load_config(tmp_path / "d.toml", {}))
    stage.show(view())
    stage.actuator.act(action(), durable=True)
    assert (await stage.result()).reason == f"resets are forbidden: {tmp_path}/maintenance is there"
