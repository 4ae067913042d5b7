"""A worker that asks for another process is replaced by one that sees enough; nothing is lost meanwhile."""

import os
from itertools import pairwise
from pathlib import Path

import pytest

from nodeagent.core.model import DeviceSeen
from nodeagent.daemon.workers.renewal import LONGEST_PAUSE_S, QUIET_S, RenewalPace
from tests.daemon.staged import HANG_S, fake, in_use, is_alive, lost, put, staged
from tests.waiting import until


async def test_another_worker_goes_on_and_nothing_is_lost(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        pid = in_use(stage)
        put(control / "renew", "it has been here for an hour")
        await stage.until(lambda: in_use(stage) != pid, "another worker")
        (control / "renew").unlink()
        await stage.polled("chip0", 2)
        await until(lambda: not is_alive(pid), "the end of the one before")
        assert (lost(stage), stage.health.restarts) == ([], 0)


async def test_what_only_another_process_sees_is_found(control: Path) -> None:
    put(control / "unseen-chip1")
    async with staged(fake(control)) as stage:
        await stage.back()
        put(control / "more", "chips are missing")
        (control / "unseen-chip1").unlink()
        await stage.polled("chip1", 1)
        assert [given.device for given in stage.inputs if isinstance(given, DeviceSeen)].count("chip1") == 1
        assert lost(stage) == []


@pytest.mark.parametrize("does", ["more", "unseen-chip2", "broken"])
async def test_one_that_sees_no_more_or_less_or_nothing_changes_nothing(control: Path, does: str) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        pid = in_use(stage)
        put(control / does)
        put(control / ("more" if does == "more" else "renew"), "it has been here for an hour")
        await begun_and_ended(control, pid)
        await stage.polled("chip0", 2)
        assert (in_use(stage), lost(stage)) == (pid, [])


async def begun_and_ended(control: Path, pid: int) -> None:
    """Another process than this one has opened the source, and is gone."""

    def others() -> list[int]:
        return [int(each) for each in (control / "opened").read_text().split() if int(each) != pid]

    await until(lambda: bool(others()), "another process")
    other = others()[0]
    await until(lambda: not is_alive(other), "its end")


async def test_none_begins_while_a_device_hangs(control: Path) -> None:
    async with staged(fake(control, call_deadline_s=HANG_S)) as stage:
        await stage.back()
        os.mkfifo(control / "hang-chip0")
        await stage.signal("driver_unresponsive", "chip0", "occur")
        put(control / "renew", "it has been here for an hour")
        await stage.polled("chip1", 10)
        assert (control / "opened").read_text().split() == [str(in_use(stage))]


async def test_who_lets_go_ends_both(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        pid = in_use(stage)
        os.mkfifo(control / "hang-open")
        put(control / "renew", "it has been here for an hour")
        await until(lambda: len((control / "opened").read_text().split()) == 2, "another process")
        assert await stage.supervisor.let_go("a test")
        assert not any(is_alive(int(each)) for each in (control / "opened").read_text().split())
        assert not is_alive(pid)


def done_at(pace: RenewalPace, begin_s: int, until_s: int) -> list[int]:
    """Asked for each second; when it is done."""
    times_s = []
    for now_s in range(begin_s, until_s):
        if pace.is_due(now_s):
            pace.done(now_s)
            times_s.append(now_s)
    return times_s


def test_what_is_asked_for_again_and_again_is_done_ever_more_seldom() -> None:
    times_s = done_at(RenewalPace(), 1000, 3000)
    pauses_s = [after - before for before, after in pairwise(times_s)]
    assert (times_s[0], pauses_s[:5], pauses_s[-1]) == (1000, [1, 2, 4, 8, 16], LONGEST_PAUSE_S)


def test_what_is_asked_for_after_a_while_is_done_at_once() -> None:
    pace = RenewalPace()
    assert done_at(pace, 1000, 1300)
    later_s = 1300 + int(QUIET_S)
    assert done_at(pace, later_s, later_s + 4) == [later_s, later_s + 1, later_s + 3]


def test_what_could_not_be_done_stays_due() -> None:
    pace = RenewalPace()
    assert [pace.is_due(now_s) for now_s in (1000, 1001, 1002)] == [True] * 3
