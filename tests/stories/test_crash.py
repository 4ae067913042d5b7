"""Kill -9 at any moment, with faults open: after the restart nothing is missing or emitted twice."""

import asyncio
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from tests.harness.daemon import Daemon
from tests.harness.kernel_log import RealKernelLog
from tests.harness.subscriber import Subscriber, as_stored, stored_events, without_gap
from tests.store.preload import DiskFault, LosableCache
from tests.stories.conftest import Follow, Launch, Subscribe

KILLS = 8
BURST = 40
DEVICES = 4

pytestmark = [pytest.mark.root]


class Writer:
    """Writes each fault once and knows which it wrote."""

    def __init__(self, log: RealKernelLog) -> None:
        self._log = log
        self.written: list[str] = []

    def write(self, count: int) -> list[str]:
        """So many new faults, spread over some devices; their codes."""
        first = len(self.written)
        codes = [f"LASTING_{number}" for number in range(first, first + count)]
        for number, code in enumerate(codes):
            self._log.say(f"device{number % DEVICES}", code)
        self.written += codes
        return codes


async def open_codes(daemon: Daemon) -> set[str]:
    return {condition.code for condition in await daemon.asked(lambda client: client.conditions())}


async def come_back(daemon: Daemon, subscriber: Subscriber) -> None:
    """Start again: what the subscriber received is open from the first moment on."""
    await subscriber.leave()
    emitted = {event.code for event in subscriber.of(EventKind.RAISED)}
    await daemon.start()
    assert emitted <= await open_codes(daemon)
    await subscriber.follow()


async def check(daemon: Daemon, subscriber: Subscriber, writer: Writer) -> None:
    """What was emitted, what is stored, what is open and what was written are the same."""
    for code in writer.written[-1:]:
        await subscriber.raised(code)
    raised = Counter(event.code for event in subscriber.of(EventKind.RAISED))
    assert raised == Counter(writer.written)
    assert len(subscriber.snapshots) == 1
    assert without_gap(subscriber.events)
    assert as_stored(subscriber.events) == (await stored_events(daemon))[-len(subscriber.events) :]
    assert await open_codes(daemon) == set(writer.written)
    assert "differ" not in daemon.log


async def test_story_06_killed_at_many_moments_no_event_is_lost_or_repeated(
    launch: Launch, subscribe: Subscribe, real_log: RealKernelLog
) -> None:
    seeded = random.Random(6)
    daemon = launch(real_log)
    await daemon.start()
    subscriber, writer = subscribe(daemon), Writer(real_log)
    await subscriber.follow()
    for _ in range(KILLS):
        codes = writer.write(BURST)
        await subscriber.raised(seeded.choice(codes))
        await daemon.kill()
        writer.write(seeded.randrange(3))
        await come_back(daemon, subscriber)

    writer.write(1)
    await check(daemon, subscriber, writer)
    print(f"{KILLS} kills, {len(writer.written)} lines, {len(subscriber.events)} events")


async def test_killed_while_it_starts_again_and_again(
    launch: Launch, subscribe: Subscribe, real_log: RealKernelLog
) -> None:
    daemon = launch(real_log)
    subscriber, writer = subscribe(daemon), Writer(real_log)
    await daemon.start()
    await subscriber.follow()
    for _ in range(3):
        writer.write(BURST)
        await daemon.kill()
        await daemon.start()
        await daemon.kill()
        await come_back(daemon, subscriber)

    writer.write(1)
    await check(daemon, subscriber, writer)


@pytest.mark.parametrize("calls", ["w", "s"])
async def test_killed_in_the_middle_of_a_commit_the_line_is_told_once(
    launch: Launch, subscribe: Subscribe, real_log: RealKernelLog, tmp_path: Path, calls: str
) -> None:
    """Before the first byte of it was written, and between the write and the sync."""
    daemon = launch(real_log)
    fault = DiskFault(daemon.state, tmp_path)
    daemon.env = fault.env
    await daemon.start()
    subscriber, writer = subscribe(daemon), Writer(real_log)
    await subscriber.follow()
    for _ in range(2):
        await subscriber.raised(writer.write(1)[0])
        hangs = await fault.begin_hang(calls)
        writer.write(1)
        await hangs
        await daemon.kill()
        fault.end()
        await come_back(daemon, subscriber)

    writer.write(1)
    await check(daemon, subscriber, writer)


async def test_what_was_told_outlives_the_loss_of_the_page_cache(
    launch: Launch, subscribe: Subscribe, real_log: RealKernelLog, tmp_path: Path
) -> None:
    seeded = random.Random(8)
    daemon = launch(real_log)
    cache = LosableCache(daemon.state, tmp_path)
    daemon.env = cache.env
    await daemon.start()
    subscriber, writer = subscribe(daemon), Writer(real_log)
    await subscriber.follow()
    for _ in range(6):
        codes = writer.write(BURST)
        await subscriber.raised(seeded.choice(codes))
        await daemon.kill()
        cache.lose()
        await come_back(daemon, subscriber)

    writer.write(1)
    await check(daemon, subscriber, writer)


async def test_killed_in_a_storm_every_line_is_counted_once(
    launch: Launch, subscribe: Subscribe, real_log: RealKernelLog
) -> None:
    daemon = launch(real_log)
    await daemon.start()
    subscriber, writer = subscribe(daemon), Writer(real_log)
    await subscriber.follow()
    for _ in range(3):
        real_log.append(real_log.line("storm", "STORM"), 300)
        await subscriber.raised(writer.write(1)[0])
        real_log.append(real_log.line("storm", "STORM"), 300)
        await daemon.kill()
        await come_back(daemon, subscriber)
    await subscriber.raised(writer.write(1)[0])

    (storm,) = await daemon.asked(lambda client: client.conditions(["storm"]))
    assert [event.code for event in subscriber.of(EventKind.RAISED)].count("STORM") == 1
    assert (storm.code, storm.count) == ("STORM", 1800)


async def test_a_deadline_that_fell_into_the_downtime_is_told_once_with_its_own_time(
    launch: Launch, follow: Follow, real_log: RealKernelLog
) -> None:
    daemon = launch(real_log)
    subscriber = await follow(daemon)
    real_log.say("a", "LASTING_1")
    real_log.say("b", "BRIEF")
    raised = await subscriber.raised("BRIEF")
    await daemon.kill()
    quiet = timedelta(seconds=1)
    await asyncio.sleep((raised.at + quiet - datetime.now(UTC)).total_seconds())

    for _ in range(3):
        await daemon.start()
        await daemon.kill()
    await daemon.start()
    await subscriber.follow()
    cleared = await subscriber.cleared("BRIEF")
    real_log.say("a", "LASTING_2")
    await subscriber.raised("LASTING_2")

    assert [event.code for event in subscriber.of(EventKind.CLEARED)] == ["BRIEF"]
    assert abs(cleared.at - raised.at - quiet) < timedelta(milliseconds=500)
    assert without_gap(subscriber.events)
    assert await open_codes(daemon) == {"LASTING_1", "LASTING_2"}
    print(f"the deadline's at is off by {(cleared.at - raised.at - quiet).total_seconds() * 1e3:.3f} ms")
