"""A daemon that is behind: the worker waits, nothing is lost, and nobody is called late for it."""

import asyncio
from pathlib import Path

import pytest

from nodeagent.daemon.source import WorkerSpec
from tests.daemon.staged import staged, worker_spec


@pytest.fixture
def spec(tmp_path: Path) -> WorkerSpec:
    return worker_spec(
        "tests.daemon.fake_driver",
        config={"control": str(tmp_path), "devices": "chip0 chip1"},
        call_deadline_s=0.3,
    )


async def test_slow_pump_makes_no_device_late(spec: WorkerSpec) -> None:
    async with staged(spec) as stage:
        await stage.back()
        pid = stage.health.pid
        stage.gate.clear()
        await asyncio.sleep(4 * spec.call_deadline_s)  # the pump's slowness itself, not a wait for an event
        stage.gate.set()
        await stage.polled("chip0", times=5)
        await stage.polled("chip1", times=5)
        assert stage.faults("driver_unresponsive") == []
        assert stage.health.pid == pid


async def test_library_that_prints_disturbs_neither_the_protocol_nor_the_worker(
    spec: WorkerSpec, tmp_path: Path
) -> None:
    (tmp_path / "mutter").touch()
    async with staged(spec) as stage:
        await stage.back()
        await stage.polled("chip0", times=5)
        assert stage.health.garbled == 0
        assert stage.faults("driver_unresponsive") == []
