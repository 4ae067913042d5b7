"""A line of the kernel that says that events were lost renews the worker of their source; no other does."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.core.model import KERNEL_LOG, NODE, Assertion, Signal
from nodeagent.daemon.sources import configured
from tests.daemon.staged import fake, in_use, is_alive, lost, put, staged
from tests.waiting import until

LINE = Signal(source=KERNEL_LOG, device=NODE, code="ASC_LQ_QUEUE_FULL", assertion=Assertion.ONCE)


def opened(control: Path) -> list[int]:
    """The processes that have opened the source, in order."""
    return [int(each) for each in (control / "opened").read_text().split()]


def test_the_line_of_the_switches_driver_is_of_their_source() -> None:
    assert list(configured.reported([LINE])) == [("unifiedbus", "ASC_LQ_QUEUE_FULL")]


@pytest.mark.parametrize(
    "other",
    [
        replace(LINE, trusted=False),
        replace(LINE, backdated=True),
        replace(LINE, source="ascend"),
        replace(LINE, code="ASC_GENERIC_ERR"),
    ],
    ids=["of user space", "of before", "not of the kernel", "another"],
)
def test_any_other_is_of_none(other: Signal) -> None:
    assert list(configured.reported([other])) == []


async def test_another_worker_goes_on_without_a_gap(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        pid = in_use(stage)
        stage.supervisor.renew("events were lost")
        await stage.until(lambda: in_use(stage) != pid, "another worker")
        await stage.polled("chip0", 2)
        await until(lambda: not is_alive(pid), "the end of the one before")
        assert (lost(stage), len(opened(control))) == ([], 2)


async def test_one_that_began_before_the_line_does_not_do(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        stage.supervisor.renew("events were lost")
        await until(lambda: len(opened(control)) == 2, "a successor")
        stage.supervisor.renew("events were lost again")
        await until(lambda: len(opened(control)) == 3, "a successor that begins after that")
        last = opened(control)[-1]
        await stage.until(lambda: in_use(stage) == last, "the last one")


async def test_it_stays_wanted_where_the_successor_cannot_open_the_source(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        pid = in_use(stage)
        put(control / "broken")
        stage.supervisor.renew("events were lost")
        await until(lambda: len(opened(control)) == 2, "a successor")
        (control / "broken").unlink()
        await stage.until(lambda: in_use(stage) != pid, "another worker")


async def test_however_many_lines_there_are_few_workers_begin(control: Path) -> None:
    async with staged(fake(control)) as stage:
        await stage.back()
        for _ in range(1000):
            stage.supervisor.renew("events were lost")
            await asyncio.sleep(0.001)
        await stage.polled("chip0", 2)
        assert len(opened(control)) < 10
