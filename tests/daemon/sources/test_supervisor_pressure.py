"""A daemon that is behind: the worker waits, nothing is lost, and nobody is called late for it."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.core.model import ActiveSet
from nodeagent.daemon.workers.worker import WorkerSpec
from tests.daemon.fake_driver import BURSTING_THREADS
from tests.daemon.staged import HANG_S, put, staged, worker_spec

BURST = 250
"""A thousand codes in all; a reply has 1024 at most."""


@pytest.fixture
def spec(tmp_path: Path) -> WorkerSpec:
    return worker_spec(
        "tests.daemon.fake_driver",
        config={"control": str(tmp_path), "devices": "chip0 chip1"},
    )


async def test_slow_pump_makes_no_device_late(spec: WorkerSpec) -> None:
    async with staged(replace(spec, call_deadline_s=HANG_S)) as stage:
        await stage.back()
        pid = stage.health.pid
        stage.gate.clear()
        await asyncio.sleep(2 * HANG_S)  # the pump's slowness itself, not a wait for an event
        stage.gate.set()
        await stage.polled("chip0", times=5)
        await stage.polled("chip1", times=5)
        assert stage.faults("driver_unresponsive") == []
        assert stage.health.pid == pid


async def test_library_that_prints_disturbs_neither_the_protocol_nor_the_worker(
    spec: WorkerSpec, tmp_path: Path
) -> None:
    put(tmp_path / "mutter")
    async with staged(spec) as stage:
        await stage.back()
        await stage.polled("chip0", times=5)
        assert stage.health.garbled == 0
        assert stage.faults("driver_unresponsive") == []


async def test_callbacks_that_come_too_fast_are_counted_and_the_next_poll_tells_what_they_said(
    spec: WorkerSpec, tmp_path: Path
) -> None:
    async with staged(spec) as stage:
        await stage.back()
        put(tmp_path / "burst", str(BURST))
        dropped = await stage.until(lambda: stage.health.readings.get("*", {}).get("dropped_callbacks_total"))
        codes = {f"BURST_{thread}_{number}" for thread in range(BURSTING_THREADS) for number in range(BURST)}
        assert dropped > 0
        await stage.until(
            lambda: any(
                isinstance(given, ActiveSet)
                and given.complete
                and codes <= {active.code for active in given.codes}
                for given in stage.inputs
            ),
            "a poll that lists them all",
        )
        assert stage.health.garbled == 0
