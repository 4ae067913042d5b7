"""The client library: what a scheduler sees when the daemon restarts, is late, or says no."""

import asyncio
import gc
import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nodeagent.client import (
    AsyncClient,
    Bookmark,
    Client,
    ClientError,
    Event,
    EventKind,
    Level,
    Position,
    Snapshot,
    Verdict,
    calls,
    received,
)
from nodeagent.client.calls import target
from nodeagent.client.generated import reading
from nodeagent.client.session import LONGEST_PAUSE_S, WatchSession
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from tests.api.samples import event
from tests.api.stage import Stage
from tests.client.filled import filled
from tests.client.wire import Wire
from tests.waiting import until


async def test_a_watch_goes_on_over_a_restart_of_the_daemon_each_event_once(stage: Stage) -> None:
    seen: list[int] = []
    async with stage.client() as client:
        stream = client.watch()
        assert isinstance(await anext(stream), Snapshot)
        await stage.commit(event(), event())
        seen += [(await anext(stream)).position.seq for _ in range(2)]
        await stage.reopen()
        await stage.commit(event(), event())
        while len(seen) < 4:
            update = await anext(stream)
            if isinstance(update, Event):
                seen.append(update.seq)
        await stream.aclose()
    assert seen == [1, 2, 3, 4]


async def test_a_watch_begun_before_the_daemon_waits_for_it(place: Path) -> None:
    stage = Stage(place)
    async with AsyncClient(stage.socket) as client:
        first = asyncio.ensure_future(anext(client.watch()))
        await asyncio.sleep(0)
        await stage.open()
        assert isinstance(await first, Snapshot)
    await stage.close()


async def test_a_watch_continues_after_its_connection_was_lost_silently(
    stage: Stage, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the power of the node fails, or something between the two forgets the connection."""
    named = ("grpc.keepalive_time_ms", "grpc.keepalive_timeout_ms", "grpc.http2.ping_timeout_ms")
    soon = dict.fromkeys(named, 100)
    monkeypatch.setattr(calls, "OPTIONS", [(key, soon.get(key, value)) for key, value in calls.OPTIONS])
    async with Wire(place / "between.sock", stage.socket) as wire, AsyncClient(wire.path) as client:
        stream = client.watch()
        assert isinstance(await anext(stream), Snapshot)
        wire.cut_silently()
        await stage.commit(event())
        update = await anext(stream)
        while not isinstance(update, Event):
            update = await anext(stream)
        await stream.aclose()
    assert update.seq == 1


async def test_a_client_that_is_closed_amid_a_stream_leaves_no_connection(stage: Stage, place: Path) -> None:
    """At once, and not only when Python looks for objects that hold each other."""
    gc.collect()
    gc.disable()
    try:
        async with Wire(place / "between.sock", stage.socket) as wire:
            async with AsyncClient(wire.path) as client:
                stream = client.watch()
                assert isinstance(await anext(stream), Snapshot)
                assert wire.is_connected
                await stream.aclose()
            await until(lambda: not wire.is_connected, "the end of the connection")
    finally:
        gc.enable()


async def test_a_position_can_be_stored_as_text_and_continued(stage: Stage) -> None:
    await stage.commit(event(), event())
    async with stage.client() as client:
        stream = client.watch()
        stored = str((await anext(stream)).position)
        await stream.aclose()
        await stage.commit(event())
        stream = client.watch(after=Position.parse(stored))
        updates = [await anext(stream), await anext(stream)]
        await stream.aclose()
    assert [type(each) for each in updates] == [Bookmark, Event]
    assert [each.position.seq for each in updates] == [2, 3]


async def test_events_have_the_enums_of_nodeagent(stage: Stage) -> None:
    async with stage.client() as client:
        stream = client.watch(kinds=[EventKind.RAISED], devices=["gpu0"], minimum_level=Level.SEPARATE_NPU)
        await anext(stream)
        await stage.commit(event("gpu1"), event("gpu0"))
        update = await anext(stream)
        await stream.aclose()
    assert isinstance(update, Event)
    assert (update.kind, update.device, update.level, update.verdict) == (
        EventKind.RAISED,
        "gpu0",
        Level.SEPARATE_NPU,
        Verdict.ISOLATE,
    )
    assert update.evidence == {"line": "NVRM: Xid (PCI:0000:3b:00): 79"}
    assert [(reason.kind, reason.code) for reason in update.reasons] == [("condition", "XID_79")]


async def test_what_trying_again_cannot_mend_ends_the_watch(stage: Stage) -> None:
    async with stage.client() as client:
        with pytest.raises(ClientError) as refused:
            await anext(client.watch(Position(uuid="another", epoch=1, seq=1), snapshot="never"))
    assert refused.value.status == "OUT_OF_RANGE"


async def test_the_blocking_client_follows_and_acknowledges(stage: Stage) -> None:
    await stage.commit(event())

    def scheduler() -> tuple[list[str], int]:
        kinds: list[str] = []
        with Client(stage.socket) as client:
            for each in client.watch():
                kinds.append(type(each).__name__)
                begun.set()
                if isinstance(each, Event):
                    return kinds, client.ack("scheduler", each.position)
        raise AssertionError("a watch has no end")

    begun = threading.Event()
    following = asyncio.ensure_future(asyncio.to_thread(scheduler))
    await asyncio.to_thread(begun.wait)
    await stage.commit(event())
    assert await following == (["Snapshot", "Event"], 2)


async def test_a_scheduler_keeps_its_verdicts_in_twenty_lines(stage: Stage, place: Path) -> None:
    """Stops after two changes, starts again where it was, and has missed nothing."""
    file = place / "verdicts.json"

    def scheduler(changes: int) -> None:
        state = json.loads(file.read_text()) if file.exists() else {"position": None, "verdicts": {}}
        after = Position.parse(state["position"]) if state["position"] else None
        with Client(stage.socket) as client:
            for update in client.watch(after):
                match update:
                    case Snapshot():
                        state["verdicts"] = {device.name: device.verdict for device in update.devices}
                    case Event():
                        state["verdicts"][update.device] = update.verdict
                        changes -= 1
                state["position"] = str(update.position)
                file.write_text(json.dumps(state))
                ready.set()
                if changes == 0:
                    return

    ready = threading.Event()
    first = asyncio.ensure_future(asyncio.to_thread(scheduler, 2))
    await asyncio.to_thread(ready.wait)
    await stage.commit(event("gpu0"), event("gpu1"))
    await first
    await stage.commit(event("gpu0", Level.NOT_HANDLE, EventKind.CLEARED), event("gpu2"))
    await asyncio.to_thread(scheduler, 2)
    assert json.loads(file.read_text())["verdicts"] == {
        "node": "ALLOW",
        "gpu0": "ALLOW",
        "gpu1": "ISOLATE",
        "gpu2": "ISOLATE",
    }


def test_pauses_between_attempts_grow_to_a_bound_and_begin_again_after_an_answer() -> None:
    session = WatchSession()
    away = ClientError("UNAVAILABLE", "nobody there")
    pauses = [session.pause_s(away) for _ in range(12)]
    assert pauses[0] <= 0.1
    assert LONGEST_PAUSE_S / 2 <= pauses[-1] <= LONGEST_PAUSE_S
    assert list(session.updates(pb.WatchResponse(bookmark=pb.Bookmark(seq=1)))) != []
    assert session.pause_s(away) <= 0.1


def test_a_daemon_that_does_not_answer_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "nodeagent.client")
    session, away = WatchSession(), ClientError("UNAVAILABLE", "nobody there")
    for _ in range(3):
        session.pause_s(away)
    list(session.updates(pb.WatchResponse(bookmark=pb.Bookmark(seq=1))))
    session.pause_s(away)
    assert [record.message for record in caplog.records] == [
        "nodeagent does not answer, waiting for it: UNAVAILABLE: nobody there",
        "nodeagent answers again",
        "nodeagent does not answer, waiting for it: UNAVAILABLE: nobody there",
    ]


def test_a_number_that_this_library_does_not_know_becomes_the_careful_choice() -> None:
    newer = pb.WatchResponse.FromString(b"\x2a\x06\x0a\x04\x18\x63\x40\x63")  # kind 99, verdict 99
    (update,) = WatchSession().updates(newer)
    assert isinstance(update, Event)
    assert (update.kind, update.verdict) == (EventKind.NOTICE, Verdict.UNKNOWN)


@pytest.mark.parametrize("kind", ["reason", "device", "condition", "promotion", "hold", "source", "reset"])
def test_every_field_of_a_message_arrives(kind: str) -> None:
    sent = filled(getattr(types_pb2, kind.capitalize()))
    value = getattr(reading, kind)(sent)
    words = {
        field.name: enums.NAMES[field.enum_type.name] for field in sent.DESCRIPTOR.fields if field.enum_type
    }
    for field in sent.DESCRIPTOR.fields:
        arrived, as_sent = getattr(value, field.name), getattr(sent, field.name)
        if field.name in words:
            assert arrived == words[field.name][as_sent]
        elif field.message_type is None:
            assert arrived == (tuple(as_sent) if field.is_repeated else as_sent)
        else:
            assert arrived  # of its own kind


def test_an_event_arrives_with_its_position_and_all_it_holds() -> None:
    event = received.event(filled(types_pb2.Event), types_pb2.StoreId(uuid="u", epoch=2))
    assert (event.position, event.seq) == (Position(uuid="u", epoch=2, seq=1), 1)
    assert event.at == datetime(2023, 11, 14, 22, 16, 40, 123456, tzinfo=UTC)
    assert [reason.kind for reason in event.reasons] == ["promotion", "promotion"]
    assert event.evidence == {"z25": "after", "a25": "before"}


def test_where_to_connect_is_given_or_in_the_environment_or_the_daemons_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NODEAGENT_SOCKET", raising=False)
    assert target(None) == "unix:/run/nodeagent/nodeagent.sock"
    monkeypatch.setenv("NODEAGENT_SOCKET", "/tmp/other.sock")
    assert target(None) == "unix:/tmp/other.sock"
    assert target("/x/y.sock") == "unix:/x/y.sock"
    assert target("node7:9443") == "node7:9443"
