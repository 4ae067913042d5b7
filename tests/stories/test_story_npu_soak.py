"""The daemon for a while, with everything going on at once: it takes no more than at the beginning."""

import asyncio
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodeagent.client import Event, EventKind, Update
from tests.harness.metrics import scraped
from tests.harness.subscriber import Subscriber, as_stored, without_gap
from tests.stories.npus import CHIPS, Npus, descriptors, eight_npus, resident_bytes, tasks

CODES = (0x80E01801, 0x80C98000, 0x81078603, 0x80B78000)
WARM_UP, ROUNDS, RECONNECT_EACH = 260, 400, 20
"""The first rounds fill what is bounded by count: the newest 4096 events. Each round has at least sixteen."""

GROWTH_BYTES = 3 << 20
"""Half of it comes by itself; a kilobyte left behind by each event of the other rounds adds more than two."""


@dataclass(frozen=True)
class Use:
    """What the daemon and its worker hold."""

    processes: int
    threads: int
    descriptors: int
    resident_bytes: int

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.processes, self.threads, self.descriptors


def use(npus: Npus) -> Use:
    pids = [npus.daemon.running.pid, *npus.workers()]
    return Use(
        processes=len(pids),
        threads=sum(len(tasks(pid)) for pid in pids),
        descriptors=sum(descriptors(pid) for pid in pids),
        resident_bytes=sum(resident_bytes(pid) for pid in pids),
    )


def no_more(now: Sequence[int], before: Sequence[int]) -> bool:
    """One less is as good: what was counted first may have had a scrape that just ended."""
    return all(map(operator.le, now, before))


@pytest.mark.slow
async def test_story_15_flapping_faults_subscribers_and_scrapes_leave_nothing_behind(tmp_path: Path) -> None:
    async with eight_npus(tmp_path) as npus:
        npus.poll_interval = "100ms"
        await npus.start()
        await npus.listening()
        other = Subscriber(npus.daemon)
        try:
            await soak(npus, other, range(WARM_UP))
            before = use(npus)
            await soak(npus, other, range(WARM_UP, ROUNDS))
            await npus.daemon.comes(
                lambda: no_more(use(npus).counts, before.counts), f"no more than before: {before.counts}"
            )
            growth = use(npus).resident_bytes - before.resident_bytes
            await other.until(lambda update: update.position == npus.subscriber.position)
        finally:
            await other.leave()

        print(f"{len(npus.events)} events; grown by {growth / 1024:.0f} KiB after the first {WARM_UP} rounds")
        assert growth < GROWTH_BYTES
        assert as_stored(npus.events)[-len(other.events) :] == as_stored(other.events)
        assert await npus.of_source("restarts_total") == 0
        assert without_gap(npus.events)


async def soak(npus: Npus, other: Subscriber, rounds: Iterable[int]) -> None:
    """The other subscriber comes anew now and then, and goes on where it was."""
    for number in rounds:
        if number % RECONNECT_EACH == 0:
            await other.follow()
        await flap(npus, number)


async def flap(npus: Npus, number: int) -> None:
    """A fault on every chip comes and goes, and the metrics are read."""
    code, heard = CODES[number % len(CODES)], npus.heard
    for chip in CHIPS:
        npus.node.raise_code(chip, code)
    await npus.subscriber.until(each_chip(EventKind.RAISED, f"{code:08X}"), heard)
    for chip in CHIPS:
        npus.node.clear_code(chip, code)
    await npus.subscriber.until(each_chip(EventKind.CLEARED, f"{code:08X}"), heard)
    await asyncio.to_thread(scraped, npus.daemon.metrics)


def each_chip(kind: EventKind, code: str) -> Callable[[Update], bool]:
    """Whether such an event of each chip was among those asked about so far."""
    missing = {*CHIPS}

    def found(update: Update) -> bool:
        if isinstance(update, Event) and (update.kind, update.code) == (kind, code):
            missing.discard(update.device)
        return not missing

    return found
