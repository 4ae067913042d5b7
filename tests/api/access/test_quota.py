"""Places are counted by identity and in all, some kept for operators; who finds none waits or is refused."""

import asyncio
from dataclasses import dataclass

import pytest

from nodeagent.api.access.limits import Limit
from nodeagent.api.access.quota import Quota
from nodeagent.api.refusal import Refusal, Status

FEW = Limit(what="streams", each=2, total=5, kept=2)
IN_LINE = Limit(what="calls", each=1, total=2, kept=0, line=1)
BYTES = Limit(what="bytes", each=100, total=300, kept=100, line=9)


@dataclass(frozen=True)
class Taker:
    counted_as: str
    is_operator: bool = False


ALICE, BOB, CAROL = Taker("uid:1"), Taker("uid:2"), Taker("uid:3")
ROOT = Taker("uid:0", is_operator=True)


def reason(quota: Quota, taker: Taker, amount: int = 1) -> str:
    obstacle = quota.obstacle(taker, amount)
    return "" if obstacle is None else obstacle.reason


def test_one_identity_has_so_many_and_no_more() -> None:
    quota = Quota(FEW)
    quota.take("uid:1")
    quota.take("uid:1")
    assert reason(quota, ALICE) == (
        "uid:1 has 2 streams, as many as one identity may have; end some, or wait until some have ended"
    )
    assert reason(quota, BOB) == ""
    quota.give_back("uid:1")
    assert reason(quota, ALICE) == ""


def test_when_readers_have_theirs_operators_still_find_some() -> None:
    quota = Quota(FEW)
    for identity in ("uid:1", "uid:1", "uid:2"):
        quota.take(identity)
    assert reason(quota, CAROL) == (
        "there are 3 streams, as many as there may be beside the 2 kept for operators; try again later"
    )
    for _ in range(2):
        assert reason(quota, ROOT) == ""
        quota.take("uid:0")
    assert quota.taken == FEW.total


def test_who_has_nothing_may_have_more_than_its_part_where_nobody_has_any() -> None:
    quota = Quota(BYTES)
    assert reason(quota, ALICE, 1000) == ""
    quota.take("uid:2", 1)
    assert "as many as there may be" in reason(quota, ALICE, 1000)
    assert reason(quota, ALICE, 199) == ""


async def test_a_place_is_free_again_when_its_holder_is_gone_however_it_went() -> None:
    quota = Quota(FEW)

    async def call() -> None:
        async with quota.held(ALICE), quota.held(ALICE):
            assert quota.taken == 2
            raise KeyError

    with pytest.raises(KeyError):
        await call()
    assert quota.taken == 0


async def test_who_finds_no_place_waits_in_line_and_beyond_the_line_is_refused() -> None:
    quota = Quota(IN_LINE)
    order: list[str] = []

    async def call(name: str) -> None:
        async with quota.held(ALICE):
            order.append(name)

    async with quota.held(ALICE):
        waiting = asyncio.create_task(call("waited"))
        await asyncio.sleep(0)
        with pytest.raises(Refusal) as refused:
            await call("too many")
        assert order == []
    await waiting
    assert order == ["waited"]
    assert refused.value.status is Status.RESOURCE_EXHAUSTED


async def test_who_gives_up_waiting_leaves_the_line() -> None:
    quota = Quota(IN_LINE)

    async def call() -> None:
        async with quota.held(ALICE):
            pass

    async with quota.held(ALICE):
        given_up = asyncio.create_task(call())
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        next_one = asyncio.create_task(call())
        await asyncio.sleep(0)
        assert not next_one.done()
    await next_one
    assert quota.taken == 0
