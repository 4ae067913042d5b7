"""Named consumers: the daemon remembers how far each has come."""

import pytest

from nodeagent.api import messages
from nodeagent.client import AsyncClient, Bookmark, ClientError, Event, Position
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.store.consumers import MOST_OF_ONE
from tests.api.peer import NOBODY, as_user
from tests.api.samples import event
from tests.api.stage import Stage


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


@pytest.mark.root
async def test_a_consumer_belongs_to_its_user_on_either_socket(stage: Stage) -> None:
    await stage.commit(event(), event())
    mine, theirs = pb.AckRequest(consumer="mine", seq=1), pb.AckRequest(consumer="theirs", seq=1)
    for request in (mine, theirs):
        request.store_id.CopyFrom(messages.store_id(stage.ledger.store_id))
    async with stage.client() as public, stage.operator() as operator:
        await public.call(mine)
        mine.seq = 2
        assert (await operator.call(mine)).seq == 2
        assert await as_user(stage, NOBODY, theirs, mine) == [
            ("OK", ""),
            ("PERMISSION_DENIED", "consumer 'mine' belongs to uid:0: choose another name"),
        ]
        assert await _status(operator, "theirs", at(stage, 2)) == "PERMISSION_DENIED"
        with pytest.raises(ClientError) as refused:
            await anext(operator.watch(consumer="theirs"))
    assert (refused.value.status, refused.value.reason) == (
        "PERMISSION_DENIED",
        f"consumer 'theirs' belongs to uid:{NOBODY}",
    )


@pytest.mark.root
async def test_what_all_users_acknowledged_as_one_is_the_first_ones_who_goes_on(stage: Stage) -> None:
    """As the daemon wrote it while it did not distinguish users of the public socket."""
    await stage.commit(event(), event(), event())
    await stage.ledger.ack("scheduler", "unix", stage.ledger.store_id, 1)
    await stage.reopen()
    request = pb.AckRequest(consumer="scheduler", seq=2, store_id=messages.store_id(stage.ledger.store_id))
    async with stage.client() as client:
        stream = client.watch(consumer="scheduler")
        first, second = await anext(stream), await anext(stream)
        await stream.aclose()
    assert (first.position.seq, second.position.seq) == (1, 2)
    assert await as_user(stage, NOBODY, request) == [("OK", "")]
    async with stage.client() as client:
        assert await _status(client, "scheduler", at(stage, 3)) == "PERMISSION_DENIED"


@pytest.mark.root
async def test_what_all_users_acknowledged_as_one_only_an_operator_deletes(stage: Stage) -> None:
    await stage.commit(event())
    await stage.ledger.ack("scheduler", "unix", stage.ledger.store_id, 1)
    denied = "consumer 'scheduler' belongs to unix: only its owner, or an operator, deletes it"
    forget = pb.DeleteConsumerRequest(consumer="scheduler")
    assert await as_user(stage, NOBODY, forget) == [("PERMISSION_DENIED", denied)]
    async with stage.operator() as operator:
        await operator.delete_consumer("scheduler")
    assert stage.ledger.consumers() == ()


async def test_there_is_a_limit_of_consumers(stage: Stage) -> None:
    await stage.commit(event())
    async with stage.client() as client:
        for number in range(MOST_OF_ONE):
            await client.ack(f"consumer-{number}", at(stage, 1))
        assert await _status(client, "one-too-many", at(stage, 1)) == "RESOURCE_EXHAUSTED"


@pytest.mark.root
async def test_everybody_sees_whose_consumers_there_are_and_how_far_they_have_come(stage: Stage) -> None:
    await stage.commit(event(), event(), event())
    theirs = pb.AckRequest(consumer="theirs", seq=3, store_id=messages.store_id(stage.ledger.store_id))
    assert await as_user(stage, NOBODY, theirs) == [("OK", "")]
    async with stage.client() as client:
        await client.ack("mine", at(stage, 1))
        listed = await client.consumers()
    assert [(each.name, each.owner, each.seq, each.lag) for each in listed] == [
        ("mine", "uid:0", 1, 2),
        ("theirs", f"uid:{NOBODY}", 3, 0),
    ]


@pytest.mark.root
async def test_a_consumer_is_deleted_by_its_owner_or_an_operator_and_by_nobody_else(stage: Stage) -> None:
    await stage.commit(event())
    theirs = pb.AckRequest(consumer="theirs", seq=1, store_id=messages.store_id(stage.ledger.store_id))
    forget_mine, forget_theirs = (pb.DeleteConsumerRequest(consumer=name) for name in ("mine", "theirs"))
    denied = "belongs to uid:0: only its owner, or an operator, deletes it"
    async with stage.client() as public, stage.operator() as operator:
        await public.ack("mine", at(stage, 1))
        assert await as_user(stage, NOBODY, theirs, forget_mine, forget_theirs, theirs) == [
            ("OK", ""),
            ("PERMISSION_DENIED", f"consumer 'mine' {denied}"),
            ("OK", ""),
            ("OK", ""),
        ]
        with pytest.raises(ClientError) as on_public_socket:
            await public.delete_consumer("theirs")
        await operator.delete_consumer("theirs")
        with pytest.raises(ClientError) as gone:
            await operator.delete_consumer("theirs")
        assert [each.name for each in await public.consumers()] == ["mine"]
    assert (on_public_socket.value.status, gone.value.status) == ("PERMISSION_DENIED", "NOT_FOUND")
    audited = [(row[2].split(" pid")[0], *row[3:]) for row in await stage.ledger.read_audit()]
    assert audited == [
        (f"uid {NOBODY}", "DeleteConsumer", "mine", "refused: consumer 'mine' belongs to uid:0"),
        (f"uid {NOBODY}", "DeleteConsumer", "theirs", f"deleted: uid:{NOBODY}'s, at 1"),
        (
            "uid 0",
            "DeleteConsumer",
            "theirs",
            f"refused: consumer 'theirs' belongs to uid:{NOBODY}",
        ),
        ("uid 0", "DeleteConsumer", "theirs", f"deleted: uid:{NOBODY}'s, at 1"),
    ]


async def _status(client: AsyncClient, consumer: str, position: Position) -> str:
    with pytest.raises(ClientError) as refused:
        await client.ack(consumer, position)
    return refused.value.status
