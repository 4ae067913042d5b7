"""A process killed at any moment, with and without the page cache: what was called durable is there."""

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

from nodeagent.core.model import Signal
from nodeagent.store.disk.retention import RetentionPolicy
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import StoredEvent
from tests.store.conftest import Process, StartChild
from tests.store.preload import LosableCache
from tests.store.samples import MACHINE, PATIENT

KILLS = 8


async def flood_then_kill(child: Process, commits: int, delay_s: float) -> int:
    """Let it commit for a while, kill it between two system calls; the last number it called durable."""
    child.order("flood")
    last = 0
    for _ in range(commits):
        last = (await child.hear())["committed"][-1]
    await asyncio.sleep(delay_s)
    said: list[dict[str, Any]] = await child.kill()
    assert all(one["durable"] for one in said)
    return said[-1]["committed"][-1] if said else last


async def check_store(directory: Path, durable_until: int) -> int:
    """No number is missing or repeated, inputs and events agree; the last number there."""
    ledger = Ledger(directory, MACHINE, limits=PATIENT, keep=RetentionPolicy(retention_ns=2**62))
    recovery = await ledger.open()
    assert (recovery.durable, recovery.store_id.epoch) == (True, 1)
    assert recovery.last_seq >= durable_until
    found: list[StoredEvent] = []
    while page := await ledger.read_events(len(found)):
        found += page
    everything = list(range(1, recovery.last_seq + 1))
    assert [one.seq for one in found] == everything
    assert [one.event.at_ns for one in found] == everything
    inputs = [one.input for one in recovery.inputs]
    assert [int(one.evidence["number"]) for one in inputs if isinstance(one, Signal)] == everything
    await ledger.close()
    return recovery.last_seq


async def test_kill_9_at_random_moments_leaves_no_gap_and_no_number_twice(
    tmp_path: Path, start_child: StartChild
) -> None:
    seeded = random.Random(7)
    directory = tmp_path / "state"
    last = 0
    for _ in range(KILLS):
        child = await start_child(directory, commit_deadline_s=60.0)
        assert (await child.hear())["last_seq"] == last
        durable = await flood_then_kill(child, seeded.randint(1, 60), seeded.uniform(0, 0.01))
        last = await check_store(directory, durable)


async def test_with_the_page_cache_lost_everything_durable_is_still_there(
    tmp_path: Path, start_child: StartChild
) -> None:
    seeded = random.Random(11)
    directory = tmp_path / "state"
    directory.mkdir()
    cache = LosableCache(directory, tmp_path)
    last = 0
    for _ in range(KILLS):
        child = await start_child(directory, cache.env, commit_deadline_s=60.0)
        assert (await child.hear())["last_seq"] == last
        durable = await flood_then_kill(child, seeded.randint(1, 300), seeded.uniform(0, 0.01))
        cache.lose()
        last = await check_store(directory, durable)
        cache.take()


async def test_the_library_really_loses_what_was_not_synced(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    directory.mkdir()
    cache = LosableCache(directory, tmp_path)
    program = (
        "import os, sys\n"
        "fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)\n"
        "os.write(fd, b'kept'); os.fsync(fd); os.write(fd, b' and lost')\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(directory / "file"), env=dict(cache.env)
    )
    assert await process.wait() == 0
    assert (directory / "file").read_bytes() == b"kept and lost"
    cache.lose()
    assert (directory / "file").read_bytes() == b"kept"
