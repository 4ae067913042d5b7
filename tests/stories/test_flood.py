"""More lines than anyone can read: the loss is counted exactly, a storm is one event, faults get through."""

import asyncio
import os
import re
import signal
import time
import urllib.request
from pathlib import Path

import pytest

from nodeagent.client import AsyncClient, EventKind
from tests.harness.daemon import Daemon, free_port
from tests.harness.kernel_log import RealKernelLog
from tests.harness.subscriber import Subscriber, without_gap
from tests.stories.conftest import Follow, Launch

LINES = 100_000
CHUNK_LINES = 500
"""Few enough for the ring, so that a reader that keeps up loses none."""

pytestmark = [pytest.mark.root]


def resident(pid: int) -> int:
    """Bytes of memory that it has had at most."""
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert peak is not None
    return int(peak[1]) * 1024


def stored_size(daemon: Daemon) -> int:
    return sum(file.stat().st_size for file in daemon.state.iterdir() if file.name.startswith("store.db"))


async def stop(pid: int) -> None:
    """SIGSTOP, and wait until it works: until every thread has stopped, the reader may go on reading."""
    os.kill(pid, signal.SIGSTOP)
    async with asyncio.timeout(60.0):
        while any(state != "T" for state in thread_states(pid)):  # noqa: ASYNC110 # only /proc shows it
            await asyncio.sleep(0.001)


def thread_states(pid: int) -> list[str]:
    """One letter for each thread (proc_pid_stat(5))."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return [stat.rpartition(")")[2].split()[0] for stat in stats]


async def stopped_at(daemon: Daemon, subscriber: Subscriber, log: RealKernelLog) -> int:
    """Stop the worker when it has read the whole ring; the kernel's number of the last record it has read."""
    number = 0
    while True:
        log.say("mark", f"LASTING_MARK{number}")
        marked = await subscriber.raised(f"LASTING_MARK{number}")
        await stop(daemon.worker())
        newest = log.numbers()[1]
        if newest == int(marked.evidence["kernel_seq"]):
            return newest
        # A line of somebody else came in between.
        os.kill(daemon.worker(), signal.SIGCONT)
        number += 1


async def test_story_03_a_reader_100000_lines_behind_says_exactly_how_many_it_lost(
    launch: Launch, follow: Follow, real_log: RealKernelLog
) -> None:
    daemon = launch(real_log, kmsg_keys=('call_deadline = "60s"',), metrics=f"127.0.0.1:{free_port()}")
    subscriber = await follow(daemon)
    worker = daemon.worker()
    last_read = await stopped_at(daemon, subscriber, real_log)
    real_log.append("noise that no pattern knows", LINES)
    real_log.say("a", "LASTING_AFTER")
    oldest = real_log.numbers()[0]
    os.kill(worker, signal.SIGCONT)
    continued_s = time.monotonic()
    await subscriber.raised("LASTING_AFTER")
    fault_s = time.monotonic() - continued_s
    gap = await subscriber.raised("log_gap")
    real_log.say("a", "LASTING_LIVE")
    written_s = time.monotonic()
    await subscriber.raised("LASTING_LIVE")
    live_s = time.monotonic() - written_s

    lost = gap.count
    # Meanwhile somebody else's lines may have taken the place of the oldest.
    at_least, at_most = oldest - last_read - 1, real_log.numbers()[0] - last_read - 1
    with urllib.request.urlopen(f"http://{daemon.metrics}/metrics") as answer:  # noqa: ASYNC210 # local, and short
        metrics = answer.read().decode()
    assert 0.9 * LINES < lost < LINES
    assert at_least <= lost <= at_most
    assert gap.evidence["reason"] == f"{lost} records were overwritten before they could be read"
    assert f'nodeagent_log_gap_records_total{{source="kmsg"}} {float(lost)}' in metrics
    assert [event.code for event in subscriber.of(EventKind.RAISED)].count("log_gap") == 1
    assert subscriber.of(EventKind.SOURCE_LOST) == []
    assert daemon.worker() == worker
    print(
        f"{lost} of {LINES} lines lost, reported exactly; the fault behind them after {fault_s * 1e3:.1f} ms,"
        f" a live one after {live_s * 1e3:.1f} ms"
    )


async def test_story_04_a_storm_is_one_event_and_a_count_and_hides_no_other_code(
    launch: Launch, follow: Follow, real_log: RealKernelLog
) -> None:
    daemon = launch(real_log)
    subscriber = await follow(daemon)
    quiet = resident(daemon.running.pid)
    begun_s, arrivals_s = time.monotonic(), []
    storm = real_log.line("storm", "STORM")
    for number in range(LINES // CHUNK_LINES):
        real_log.append(storm, CHUNK_LINES)
        written_s = time.monotonic()
        real_log.say("a", f"LASTING_{number}")
        await subscriber.raised(f"LASTING_{number}")
        arrivals_s.append(time.monotonic() - written_s)
    took_s = time.monotonic() - begun_s

    async with AsyncClient(daemon.socket) as client:
        (condition,) = await client.conditions(["storm"])
    raised = [event.code for event in subscriber.of(EventKind.RAISED)]
    assert raised.count("STORM") == 1
    assert raised.count("log_gap") == 0
    assert condition.count == LINES
    assert without_gap(subscriber.events)
    grown, stored = resident(daemon.running.pid) - quiet, stored_size(daemon)
    assert grown < 32 << 20
    assert stored < 16 << 20
    arrivals_s.sort()
    print(
        f"{LINES} lines in {took_s:.1f} s: 1 event, count {condition.count}; other codes after"
        f" {arrivals_s[len(arrivals_s) // 2] * 1e3:.1f} ms (median), {arrivals_s[-1] * 1e3:.1f} ms (worst);"
        f" memory +{grown >> 20} MiB, store {stored >> 10} KiB"
    )


async def test_story_04_a_storm_faster_than_any_reader_is_bounded_and_fully_accounted_for(
    launch: Launch, follow: Follow, real_log: RealKernelLog
) -> None:
    daemon = launch(real_log)
    subscriber = await follow(daemon)
    quiet = resident(daemon.running.pid)
    before = real_log.numbers()[1]
    real_log.append(real_log.line("storm", "STORM"), LINES)
    real_log.say("a", "LASTING_AFTER")
    await subscriber.raised("LASTING_AFTER")
    of_others = real_log.numbers()[1] - before - LINES - 1

    async with AsyncClient(daemon.socket) as client:
        counts = {condition.code: condition.count for condition in await client.conditions()}
    raised = [event.code for event in subscriber.of(EventKind.RAISED)]
    assert (raised.count("STORM"), raised.count("log_gap") <= 1) == (1, True)
    assert LINES <= counts["STORM"] + counts.get("log_gap", 0) <= LINES + of_others
    assert resident(daemon.running.pid) - quiet < 32 << 20
    assert stored_size(daemon) < 16 << 20
    print(f"{counts['STORM']} of {LINES} lines counted, {counts.get('log_gap', 0)} reported as lost")
