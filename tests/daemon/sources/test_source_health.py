"""How a source does is shown for all its devices: one that fails is not hidden by the next that answers."""

import os
from pathlib import Path

from nodeagent.daemon.workers.worker import WorkerSpec
from tests.daemon.staged import HANG_S, put, release_fifo, staged, worker_spec


def fake(control: Path, **given: object) -> WorkerSpec:
    config = {"control": str(control), "devices": "chip0 chip1"}
    return worker_spec("tests.daemon.fake_driver", config=config, **given)


async def test_polls_succeed_only_while_every_device_answers_well(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        assert stage.health.last_poll_ok

        put(control / "fail-chip1", "device is busy")
        await stage.lost("chip1")
        for _ in range(3):
            await stage.polled("chip0")
            assert not stage.health.last_poll_ok

        (control / "fail-chip1").unlink()
        await stage.back("chip1")
        assert stage.health.last_poll_ok


async def test_a_device_that_does_not_answer_is_no_success(control: Path) -> None:
    async with staged(fake(control, call_deadline_s=HANG_S)) as stage:
        await stage.back()
        os.mkfifo(control / "hang-chip1")
        await stage.lost("chip1")
        await stage.polled("chip0", times=2)
        assert not stage.health.last_poll_ok

        release_fifo(control / "hang-chip1")
        (control / "hang-chip1").unlink()
        await stage.back("chip1")
        assert stage.health.last_poll_ok


async def test_a_source_that_is_lost_has_no_success(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        put(control / "outdated", "the driver was unloaded")
        put(control / "broken", "")
        await stage.lost()
        assert stage.health.last_poll_ok is False
