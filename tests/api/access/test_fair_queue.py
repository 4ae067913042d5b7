"""Longer work goes one piece at a time, by identity, and rests when it has gone on for long."""

import asyncio

import pytest

from nodeagent.api.access.quota import BURST_S, SHARE, FairQueue


async def test_who_asks_much_waits_behind_who_asks_little() -> None:
    turns = FairQueue()
    order: list[str] = []

    async def work(identity: str, name: str) -> None:
        async with turns.turn(identity):
            order.append(name)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as all_of_them:
        for name in ("a1", "a2", "a3", "a4", "b1", "b2"):
            all_of_them.create_task(work(name[0], name))
    assert order == ["a1", "a2", "b1", "a3", "b2", "a4"]


async def test_one_piece_is_worked_on_at_a_time() -> None:
    turns = FairQueue()
    at_work = 0

    async def work() -> None:
        nonlocal at_work
        async with turns.turn("a"):
            at_work += 1
            await asyncio.sleep(0)
            assert at_work == 1
            at_work -= 1

    await asyncio.gather(*(work() for _ in range(5)))


async def test_after_long_work_everything_else_has_its_share_of_the_time() -> None:
    now_s = 0.0
    turns = FairQueue(lambda: now_s)
    rests: list[float] = []
    loop = asyncio.get_running_loop()

    async with turns.turn("a"):
        now_s += BURST_S
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "call_later", lambda rest_s, _: rests.append(rest_s))
        async with turns.turn("a"):
            now_s += 0.1
    assert rests == [pytest.approx((BURST_S + 0.1) / SHARE - (BURST_S + 0.1) - BURST_S)]


@pytest.mark.parametrize("has_its_turn", [False, True])
async def test_who_gives_up_holds_up_nobody(has_its_turn: bool) -> None:
    turns = FairQueue()

    async def work() -> None:
        async with turns.turn("a"):
            await asyncio.sleep(0)

    first = asyncio.create_task(work())
    given_up = asyncio.create_task(work())
    await asyncio.sleep(0)
    if has_its_turn:
        await first
    given_up.cancel()
    await asyncio.gather(first, given_up, return_exceptions=True)
    async with asyncio.timeout(5):
        await work()
