"""Named consumers: the daemon remembers how far each has come."""

import pytest

from nodeagent.client import AsyncClient, Bookmark, ClientError, Event, Position
from tests.outlets.samples import event
from tests.outlets.stage import Stage


def at(stage: Stage, seq: int) -> Position:
    store_id = stage.ledger.store_id
    return Position(uuid=store_id.uuid, epoch=store_id.epoch, seq=seq)


async def test_a_consumer_continues_after_what_it_acknowledged_also_over_a_restart(stage: Stage) -> None:
    await stage.commit(event(), event(), event())
    async with stage.client() as client:
        assert await client.ack("scheduler", at(stage, 2)) == 2
    await stage.reopen()
    async with stage.client() as client:
        stream = client.watch(consumer="scheduler")
        first, second = await anext(stream), await anext(stream)
        await stream.aclose()
    assert isinstance(first, Bookmark)
    assert isinstance(second, Event)
    assert (first.position.seq, second.seq) == (2, 3)


async def test_a_lower_acknowledgement_is_ignored(stage: Stage) -> None:
    await stage.commit(event(), event(), event())
    async with stage.client() as client:
        assert await client.ack("scheduler", at(stage, 3)) == 3
        assert await client.ack("scheduler", at(stage, 1)) == 3


async def test_an_acknowledgement_that_cannot_be_is_refused_with_its_own_status(stage: Stage) -> None:
    await stage.commit(event())
    foreign = Position(uuid="another", epoch=1, seq=1)
    async with stage.client() as client:
        assert await _status(client, "scheduler", foreign) == "FAILED_PRECONDITION"
        assert await _status(client, "scheduler", at(stage, 2)) == "INVALID_ARGUMENT"
        assert await _status(client, "", at(stage, 1)) == "INVALID_ARGUMENT"
        assert await _status(client, "two\nlines", at(stage, 1)) == "INVALID_ARGUMENT"


async def test_a_consumer_belongs_to_who_made_it(stage: Stage) -> None:
    await stage.commit(event())
    async with stage.client() as public, stage.operator() as operator:
        await public.ack("scheduler", at(stage, 1))
        assert await _status(operator, "scheduler", at(stage, 1)) == "PERMISSION_DENIED"
        with pytest.raises(ClientError) as refused:
            await anext(operator.watch(consumer="scheduler"))
    assert refused.value.status == "PERMISSION_DENIED"


async def test_there_is_a_limit_of_consumers(stage: Stage) -> None:
    await stage.commit(event())
    async with stage.client() as client:
        for number in range(64):
            await client.ack(f"consumer-{number}", at(stage, 1))
        assert await _status(client, "one-too-many", at(stage, 1)) == "RESOURCE_EXHAUSTED"


async def _status(client: AsyncClient, consumer: str, position: Position) -> str:
    with pytest.raises(ClientError) as refused:
        await client.ack(consumer, position)
    return refused.value.status
