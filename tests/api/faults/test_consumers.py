"""Named consumers: the daemon remembers how far each has come."""

from collections.abc import Awaitable

import pytest

from nodeagent.api import messages
from nodeagent.client import AsyncClient, Bookmark, ClientError, Event, Position
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.store.consumers import MOST_OF_ONE
from tests.api.peer import NOBODY, as_user
from tests.api.samples import event
from tests.api.stage import Stage
from tests.waiting import until


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


async def test_who_has_lost_its_data_is_given_again_what_it_had_acknowledged(stage: Stage) -> None:
    await stage.commit(event(), event(), event(), event())
    async with stage.client() as client:
        await client.ack("scheduler", at(stage, 4))
        assert await client.rewind("scheduler", at(stage, 1)) == 1
    await stage.reopen()
    async with stage.client() as client:
        stream = client.watch(consumer="scheduler")
        updates = [await anext(stream) for _ in range(4)]
        await stream.aclose()
        assert await client.ack("scheduler", at(stage, 2)) == 2
    assert [update.position.seq for update in updates] == [1, 2, 3, 4]


async def test_a_number_that_is_no_longer_kept_becomes_the_one_before_the_oldest(stage: Stage) -> None:
    await stage.commit(event(), event(), long_ago=True)
    await stage.commit(event(), event())
    await stage.reopen()
    await until(lambda: stage.ledger.oldest_seq == 3)
    async with stage.client() as client:
        await client.ack("scheduler", at(stage, 4))
        assert await client.rewind("scheduler", at(stage, 0)) == 2
        stream = client.watch(consumer="scheduler")
        updates = [await anext(stream) for _ in range(3)]
        await stream.aclose()
    assert [type(update) for update in updates] == [Bookmark, Event, Event]


async def test_a_consumer_is_not_set_back_to_where_it_has_not_been(stage: Stage) -> None:
    await stage.commit(event(), event(), event())
    async with stage.client() as client:
        await client.ack("scheduler", at(stage, 2))
        refused = {
            position: await _refusal(client.rewind("scheduler", position))
            for position in (at(stage, 3), Position(uuid="another", epoch=1, seq=1))
        }
        unknown = await _refusal(client.rewind("nobody", at(stage, 1)))
        assert [each.seq for each in await client.consumers()] == [2]
    assert refused[at(stage, 3)] == (
        "INVALID_ARGUMENT",
        "number 3 is beyond 2, the last that 'scheduler' has acknowledged: only Ack moves a consumer on",
    )
    assert refused[Position(uuid="another", epoch=1, seq=1)][0] == "FAILED_PRECONDITION"
    assert unknown == ("NOT_FOUND", "consumer: there is none of the name 'nobody'")


@pytest.mark.root
async def test_a_consumer_is_set_back_by_its_owner_or_an_operator_and_it_is_audited(stage: Stage) -> None:
    await stage.commit(event(), event())
    store_id = messages.store_id(stage.ledger.store_id)
    theirs = pb.AckRequest(consumer="theirs", seq=2, store_id=store_id)
    rewind_mine, rewind_theirs = (
        pb.RewindConsumerRequest(consumer=name, store_id=store_id, seq=1) for name in ("mine", "theirs")
    )
    denied = "consumer 'mine' belongs to uid:0: only its owner, or an operator, sets it back"
    async with stage.client() as public, stage.operator() as operator:
        await public.ack("mine", at(stage, 2))
        assert await as_user(stage, NOBODY, theirs, rewind_mine, rewind_theirs) == [
            ("OK", ""),
            ("PERMISSION_DENIED", denied),
            ("OK", ""),
        ]
        assert (await _refusal(public.rewind("theirs", at(stage, 0))))[0] == "PERMISSION_DENIED"
        assert await operator.rewind("theirs", at(stage, 0)) == 0
        assert [(each.name, each.seq) for each in await public.consumers()] == [("mine", 2), ("theirs", 0)]
    audited = [(row[2].split(" pid")[0], *row[3:]) for row in await stage.ledger.read_audit()]
    assert audited == [
        (f"uid {NOBODY}", "RewindConsumer", "mine", "refused: consumer 'mine' belongs to uid:0"),
        (f"uid {NOBODY}", "RewindConsumer", "theirs", f"set back: uid:{NOBODY}'s, from 2 to 1"),
        ("uid 0", "RewindConsumer", "theirs", f"refused: consumer 'theirs' belongs to uid:{NOBODY}"),
        ("uid 0", "RewindConsumer", "theirs", f"set back: uid:{NOBODY}'s, from 1 to 0"),
    ]


async def test_who_is_set_back_while_the_disk_fails_is_told_that_it_may_not_last(stage: Stage) -> None:
    await stage.commit(event(), event())
    request = pb.RewindConsumerRequest(consumer="scheduler", seq=1)
    async with stage.client() as client:
        await client.ack("scheduler", at(stage, 2))
        stage.ledger._durability.leave("as a disk that fails")
        request.store_id.CopyFrom(messages.store_id(stage.ledger.store_id))
        answer = await client.call(request)
    assert (answer.seq_before, answer.seq, answer.durable, answer.not_durable_reason) == (
        *(2, 1, False),
        "as a disk that fails",
    )


async def _refusal(call: Awaitable[object]) -> tuple[str, str]:
    with pytest.raises(ClientError) as refused:
        await call
    return refused.value.status, refused.value.reason


async def _status(client: AsyncClient, consumer: str, position: Position) -> str:
    status, _ = await _refusal(client.ack(consumer, position))
    return status
