"""What hangs more than once leaves nothing behind: no thread, no process, no descriptor."""

import gc
import os
from pathlib import Path

from nodeagent.core.model import ActiveSet, SourceBack, SourceLost
from nodeagent.daemon.workers.worker import WorkerSpec
from tests.daemon.staged import HANG_S, Staged, is_alive, release_fifo, staged, threads_of, worker_spec

FAKE = "tests.daemon.fake_driver"
EIGHT = [f"chip{number}" for number in range(8)]
REPETITIONS = 2


def fake(control: Path, devices: str, **given: object) -> WorkerSpec:
    return worker_spec(FAKE, config={"control": str(control), "devices": devices}, **given)


def descriptors_of(pid: int | None) -> int:
    gc.collect()  # what earlier tests left is not of this one
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def children() -> set[int]:
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return {int(pid) for pid in listed}


def let_go(fifo: Path) -> None:
    """Whoever waits in it goes on, and nobody comes to wait in it any more."""
    released = fifo.rename(fifo.with_name("released"))
    release_fifo(released)


def answers(stage: Staged, device: str, after: int) -> int:
    return sum(isinstance(given, ActiveSet) and given.device == device for given in stage.inputs[after:])


async def test_one_of_eight_hangs_again_and_again_and_the_others_keep_their_period(control: Path) -> None:
    spec = fake(control, " ".join(EIGHT), call_deadline_s=HANG_S, poll_interval_s=0.05)
    hang = control / "hang-chip5"
    async with staged(spec) as stage:
        await stage.back()
        pid = stage.health.pid
        await stage.until(lambda: "*" in stage.health.readings or None, "an answer of the source itself")
        threads, theirs, ours = threads_of(pid), descriptors_of(pid), descriptors_of(os.getpid())
        for number in range(1, REPETITIONS + 1):
            os.mkfifo(hang)
            before = len(stage.inputs)
            await stage.signal("driver_unresponsive", "chip5", "occur", after=before)
            await stage.lost("chip5", after=before)
            at = len(stage.inputs)
            await stage.polled("chip0", times=3)
            assert answers(stage, "chip5", at) == 0
            assert min(answers(stage, device, before) for device in EIGHT if device != "chip5") >= 3
            let_go(hang)
            await stage.signal("driver_unresponsive", "chip5", "recover", after=at)
            await stage.back("chip5", after=at)
            assert stage.faults("driver_unresponsive") == [("chip5", "occur"), ("chip5", "recover")] * number
        lost = {given.device for given in stage.inputs if isinstance(given, SourceLost)}
        assert lost == {"chip5"}
        assert stage.health.pid == pid
        assert threads_of(pid) <= threads  # its start may have had one more, for a moment
        assert descriptors_of(pid) == theirs
        assert descriptors_of(os.getpid()) == ours


async def test_a_driver_that_wedges_again_and_again_is_left_replaced_and_restored_without_a_trace(
    control: Path,
) -> None:
    stuck = control / "stuck-chip1"
    async with staged(fake(control, "chip0 chip1", call_deadline_s=HANG_S)) as stage:
        await stage.back()
        before = children() - {stage.health.pid}  # the first worker may have had what forks it started
        ours = descriptors_of(os.getpid())
        for _ in range(REPETITIONS):
            begun = len(stage.inputs)
            os.mkfifo(stuck)
            os.mkfifo(control / "hang-chip0")
            (abandoned,) = await stage.until(lambda: stage.health.abandoned_pids, "an abandoned worker")
            (control / "hang-chip0").unlink()
            await stage.back(after=begun)
            await stage.lost("chip1", after=begun)
            let_go(stuck)
            await stage.signal("driver_unresponsive", "chip1", "recover", after=begun)
            await stage.until(lambda: not stage.health.abandoned_pids, "its end")
            await stage.until(lambda: children() - before == {stage.health.pid}, "the replacement's end")
            assert not is_alive(abandoned)
        await stage.until(lambda: descriptors_of(os.getpid()) == ours, "no descriptor left open")
        whole = [given for given in stage.inputs if isinstance(given, SourceBack) and not given.device]
        assert stage.health.restarts == REPETITIONS
        assert len(whole) == 1 + REPETITIONS
