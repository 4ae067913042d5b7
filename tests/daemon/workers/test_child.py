"""A worker process and its pipes."""

import asyncio
import gc
import logging
import os
import signal
from pathlib import Path

import pytest

from nodeagent.daemon.workers.child import Child, WorkerEvents

PATIENT = ("sleep", "60")


def descriptors() -> set[str]:
    gc.collect()  # what earlier tests left is not of this one
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def children() -> list[str]:
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()


@pytest.mark.parametrize("turns", range(1, 8))
async def test_a_start_that_is_called_off_leaves_neither_process_nor_descriptor(turns: int) -> None:
    """After so many turns of the loop; sooner or later it has started."""
    heard: WorkerEvents = asyncio.Queue()
    before, others = len(descriptors()), children()
    starting = asyncio.create_task(Child.spawn(PATIENT, heard, logging.getLogger()))
    for _ in range(turns):
        await asyncio.sleep(0)
    starting.cancel()
    (started,) = await asyncio.gather(starting, return_exceptions=True)
    if isinstance(started, Child):
        started.signal(signal.SIGKILL)
        assert await started.wait(60.0)
        await started.release()
    await asyncio.sleep(0)
    assert children() == others
    assert len(descriptors()) == before
