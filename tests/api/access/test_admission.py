"""Which calls are let in: limits by user, places kept for operators, plain words for what is no request."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import grpc
import pytest

from nodeagent.api.access import limits
from nodeagent.api.access.limits import Limit, RateLimit, a_second
from nodeagent.api.access.quota import Rate
from nodeagent.api.access.relay import Relay
from nodeagent.messages.pb import fault_service_pb2
from tests.api import http2
from tests.api.access.callers import GET_NODE, LIST_EVENTS, crowd, hoarding
from tests.api.peer import NOBODY
from tests.api.samples import event
from tests.api.stage import Stage
from tests.api.watching import WATCH, watching
from tests.waiting import until

HEALTH_WATCH = "/grpc.health.v1.Health/Watch"
LIMIT_S = 30.0
ISOLATE = "/nodeagent.v1.ControlService/IsolateDevice"

OWN = "as many as one identity may have; end some, or wait until some have ended"
ALL = "as many as there may be beside the 2 kept for operators; try again later"
FEW_STREAMS = Limit(what="streams", each=3, total=6, kept=2)
FEW_CALLS = Limit(what="calls", each=2, total=4, kept=1)


@asynccontextmanager
async def opened(place: Path) -> AsyncIterator[Stage]:
    """A stage with the limits as the test has set them."""
    stage = Stage(place)
    await stage.open()
    stage.socket.chmod(0o666)
    try:
        yield stage
    finally:
        await stage.close()


async def refusal(path: Path, method: str, request: bytes) -> tuple[str, str]:
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary(method)(request)
    return refused.value.code().name, refused.value.details() or ""


@pytest.mark.parametrize("method", [GET_NODE, WATCH, HEALTH_WATCH, ISOLATE])
async def test_what_is_no_message_is_refused_with_the_name_of_the_method(stage: Stage, method: str) -> None:
    status, reason = await refusal(stage.control_socket, method, b"\xff\xff\xff")
    name = method.rpartition("/")[2]
    assert status == "INVALID_ARGUMENT"
    assert reason.startswith(f"{name}: the request is no message of this method")


async def test_a_request_that_is_too_large_is_refused(stage: Stage) -> None:
    status, reason = await refusal(stage.socket, GET_NODE, bytes(limits.MAX_REQUEST_BYTES + 1))
    assert (status, "262145 vs. 262144" in reason) == ("RESOURCE_EXHAUSTED", True)


async def test_a_call_whose_request_never_comes_gives_its_place_back(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REQUEST_LIMIT_S", 0.1)
    async with opened(place) as stage:
        calls = stage.server.places.calls
        with http2.connected(stage.socket) as peer:
            peer.sendall(http2.call(0, GET_NODE, None))
            await until(lambda: calls.taken == 1)
            await until(lambda: calls.taken == 0)


@pytest.mark.root
@pytest.mark.parametrize("method", [WATCH, HEALTH_WATCH])
async def test_streams_of_one_user_leave_places_for_other_users_and_for_operators(
    place: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(limits, "STREAMS", FEW_STREAMS)
    async with opened(place) as stage:
        async with crowd(stage.socket, NOBODY, method, 5) as one, crowd(stage.socket, 1, WATCH, 2) as other:
            assert one == (
                3,
                2,
                f"RESOURCE_EXHAUSTED: uid:{NOBODY} has 3 streams, {OWN}",
            )
            assert other == (
                1,
                1,
                f"RESOURCE_EXHAUSTED: there are 4 streams, {ALL}",
            )
            async with watching(stage.control_socket) as stream:
                assert (await stream.snapshot()).seq == 0
        await until(lambda: stage.server.places.streams.taken == 0)


@pytest.mark.root
async def test_calls_of_one_user_leave_places_for_other_users_and_for_operators(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two users ask for more than they take; then everybody else asks."""
    monkeypatch.setattr(limits, "CALLS", FEW_CALLS)
    events = fault_service_pb2.ListEventsRequest(limit=1000)
    async with opened(place) as stage, AsyncExitStack() as peers:
        await stage.commit(*(event() for _ in range(500)))
        for uid in (1, 2):
            asking = hoarding(stage.socket, uid, LIST_EVENTS, events, connections=1, calls=5, window=0)
            await peers.enter_async_context(asking)
        await until(lambda: stage.server.places.calls.taken == FEW_CALLS.total - FEW_CALLS.kept)
        async with stage.operator() as client:
            assert [device.name for device in await client.devices()] == ["node", "gpu0"]
        assert (await refusal(stage.control_socket, ISOLATE, b""))[0] == "UNIMPLEMENTED"
        async with crowd(stage.socket, NOBODY, GET_NODE, 3) as (answered, refused, reason):
            assert (answered, refused) == (0, 3)
            assert "1 kept for operators" in reason


async def test_what_root_has_on_the_public_socket_takes_nothing_from_root_on_the_control_socket(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root there may be of a container: it has all that a reader may have, by calls without a request."""
    monkeypatch.setattr(limits, "CALLS", FEW_CALLS)
    monkeypatch.setattr(limits, "STREAMS", FEW_STREAMS)
    monkeypatch.setattr(limits, "OPEN_CALLS", Limit(what="calls and streams", each=5, total=12, kept=5))
    async with opened(place) as stage:
        places = stage.server.places
        with http2.connected(stage.socket) as peer:
            for number in range(FEW_CALLS.each):
                peer.sendall(http2.call(number, GET_NODE, None))
            for number in range(FEW_STREAMS.each):
                peer.sendall(http2.call(FEW_CALLS.each + number, WATCH, None))
            await until(lambda: places.open.taken == FEW_CALLS.each + FEW_STREAMS.each)
            async with stage.operator() as client, watching(stage.control_socket) as stream:
                assert [device.name for device in await client.devices()] == ["node"]
                assert (await stream.snapshot()).seq == 0
            assert (await refusal(stage.control_socket, ISOLATE, b""))[0] == "UNIMPLEMENTED"


@pytest.mark.root
async def test_root_on_the_public_socket_has_no_place_kept_for_operators_and_rests_as_all_readers(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STREAMS", FEW_STREAMS)
    monkeypatch.setattr(
        limits, "CALL_RATE", RateLimit(each=a_second(10, burst_s=0.5), total=a_second(20, burst_s=0.5))
    )
    resting: list[str] = []
    monkeypatch.setattr(Relay, "rest", lambda _relay, identity, _rest_s: resting.append(identity))
    async with opened(place) as stage, crowd(stage.socket, NOBODY, WATCH, 3) as one:
        assert one[:2] == (3, 0)
        async with crowd(stage.socket, 0, WATCH, 10) as root:
            assert root == (1, 9, f"RESOURCE_EXHAUSTED: there are 4 streams, {ALL}")
    assert set(resting) == {"uid:0"}


async def test_answers_that_are_not_taken_keep_room_for_others(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who takes nothing waits for room in the end; whoever takes what he asks for does not."""
    small = Limit(what="bytes of answers", each=300_000, total=700_000, kept=100_000, line=9)
    monkeypatch.setattr(limits, "ANSWER_BYTES", small)
    events = fault_service_pb2.ListEventsRequest(limit=1000)
    async with opened(place) as stage:
        await stage.commit(*(event() for _ in range(1000)))
        async with stage.client() as client:
            size = len((await client.call(events)).SerializeToString())
            assert small.each // 2 < size < small.each
            with http2.connected(stage.socket, window=0) as peer:
                for number in range(3):
                    peer.sendall(http2.call(number, LIST_EVENTS, events.SerializeToString()))
                places = stage.server.places
                await until(lambda: places.calls.taken == 3)
                await until(lambda: places.answers.taken == size)
                assert [device.name for device in await client.devices()] == ["node", "gpu0"]
            await until(lambda: places.answers.taken == places.calls.taken == 0)


async def test_who_does_not_take_his_answer_loses_the_connection(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "ANSWER_LIMIT_S", 0.1)
    events = fault_service_pb2.ListEventsRequest(limit=1000)
    async with opened(place) as stage:
        await stage.commit(*(event() for _ in range(500)))
        with http2.connected(stage.socket, window=0) as peer:
            peer.sendall(http2.call(0, LIST_EVENTS, events.SerializeToString()))
            await asyncio.to_thread(read_to_the_end, peer)
        await until(lambda: stage.server.places.calls.taken == 0)
    assert "Traceback" not in caplog.text


async def test_who_has_more_calls_open_than_there_may_be_loses_the_connection(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused ones count as well, for as long as the refusal is not read."""
    few = Limit(what="calls and streams", each=3, total=9, kept=3)
    monkeypatch.setattr(limits, "OPEN_CALLS", few)
    events = fault_service_pb2.ListEventsRequest(limit=1000)
    async with opened(place) as stage:
        await stage.commit(*(event() for _ in range(500)))
        with http2.connected(stage.socket, window=0) as peer:
            for number in range(few.each + 1):
                peer.sendall(http2.call(number, LIST_EVENTS, events.SerializeToString()))
            await asyncio.to_thread(read_to_the_end, peer)
        await until(lambda: stage.server.places.open.taken == 0)
        async with stage.client() as client:
            assert [device.name for device in await client.devices()] == ["node", "gpu0"]


@pytest.mark.root
async def test_who_calls_more_often_than_his_share_rests_and_nobody_else(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        limits, "CALL_RATE", RateLimit(each=a_second(10, burst_s=0.5), total=a_second(20, burst_s=0.5))
    )
    resting: list[str] = []
    rest = Relay.rest

    def noted(relay: Relay, identity: str, rest_s: float) -> None:
        resting.append(identity)
        rest(relay, identity, rest_s)

    monkeypatch.setattr(Relay, "rest", noted)
    async with opened(place) as stage:
        async with crowd(stage.socket, NOBODY, GET_NODE, 10) as crowded:
            assert crowded == (10, 0, "")
        async with stage.operator() as client:
            for _ in range(20):
                await client.devices()
    assert set(resting) == {f"uid:{NOBODY}"}


def test_a_rate_is_reckoned_by_identity_and_for_all() -> None:
    now_s = 100.0
    rate = Rate(RateLimit(each=a_second(10, burst_s=1.0), total=a_second(20, burst_s=1.0)), lambda: now_s)
    assert [rate.spend("uid:1") for _ in range(10)] == [0.0] * 10
    assert [rate.spend("uid:1") for _ in range(2)] == pytest.approx([0.1, 0.2])
    assert [rate.spend("uid:2") for _ in range(8)] == [0.0] * 8
    assert rate.spend("uid:2") == pytest.approx(0.05)
    now_s += 60.0
    assert rate.spend("uid:1") == 0.0


def read_to_the_end(peer: socket.socket) -> None:
    peer.settimeout(LIMIT_S)
    while peer.recv(4096):
        pass
