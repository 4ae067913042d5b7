"""Nodes are followed over everything that becomes of them and of the follower; each event once, in order."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeagent.client import EventKind, Snapshot, Verdict
from nodeagent.core.model import Event, Level
from nodeagent.fleet import follower
from nodeagent.fleet.credentials import ClientCertificateFiles, Credentials
from nodeagent.fleet.delivery import Execution
from nodeagent.fleet.follower import connecting
from nodeagent.fleet.nodes import Endpoint
from nodeagent.fleet.positions import Positions
from nodeagent.fleet.state import MAX_PARTS, Contact
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from tests.api import samples
from tests.api.access.tcp import ROLES, SERVER_NAMES, configured
from tests.api.certificates import Authority
from tests.api.samples import event
from tests.api.stage import Stage
from tests.fleet.crew import at, crew
from tests.fleet.odd import sending
from tests.waiting import until


def cleared() -> Event:
    return event(kind=EventKind.CLEARED, level=Level.NOT_HANDLE)


@pytest.fixture
async def stages(place: Path) -> AsyncIterator[dict[str, Stage]]:
    """Two nodes, by their names."""
    made = {}
    for name in ("a", "b"):
        (place / name).mkdir()
        made[name] = Stage(place / name)
        await made[name].open()
    yield made
    for each in made.values():
        await each.close()


async def test_it_begins_with_the_state_and_goes_on_with_events(stage: Stage) -> None:
    await stage.commit(event())
    async with crew(at("a", stage.socket)) as followers:
        await until(lambda: followers.whats("a") == ["state"])
        assert followers.of("a").verdict is Verdict.ISOLATE
        assert followers.of("a").said_name == "rack7-node3"
        await stage.commit(cleared())
        await followers.until_events("a", 2)
        assert followers.of("a").verdict is Verdict.ALLOW


async def test_a_restart_of_the_daemon_is_reported_and_loses_nothing(stage: Stage) -> None:
    async with crew(at("a", stage.socket)) as followers:
        await until(lambda: followers.whats("a") == ["state"])
        await stage.commit(event(), cleared())
        await followers.until_events("a", 1, 2)
        await stage.close()
        await until(lambda: followers.of("a").contact is Contact.AWAY)
        assert followers.of("a").verdict is Verdict.UNKNOWN
        await stage.reopen()
        await stage.commit(event())
        await followers.until_events("a", 1, 2, 3)
        assert followers.whats("a") == ["state", "event", "event", "away", "back", "event"]
        assert followers.of("a").verdict is Verdict.ISOLATE


async def test_a_node_that_is_not_there_yet_is_waited_for(place: Path) -> None:
    stage = Stage(place)
    async with crew(at("a", stage.socket)) as followers:
        await until(lambda: followers.whats("a") == ["away"])
        assert "No such file or directory" in followers.of("a").reason
        await stage.open()
        await until(lambda: followers.whats("a") == ["away", "back", "state"])
    await stage.close()


async def test_a_restarted_follower_continues_and_knows_the_present_state(
    stage: Stage, tmp_path: Path
) -> None:
    positions = Positions.open(tmp_path / "positions")
    async with crew(at("a", stage.socket), positions=positions) as followers:
        await until(lambda: followers.whats("a") == ["state"])
        await stage.commit(event(device="gpu1"))
        await followers.until_events("a", 1)
    positions.close()
    await stage.commit(cleared(), event())

    positions = Positions.open(tmp_path / "positions")
    async with crew(at("a", stage.socket), positions=positions) as followers:
        await followers.until_events("a", 2, 3)
        assert followers.whats("a") == ["event", "event"]
        await until(
            lambda: {part.name for part in followers.of("a").parts.values()} == {"node", "gpu0", "gpu1"}
        )
        assert followers.of("a").verdict is Verdict.ISOLATE
    positions.close()


async def test_an_event_whose_command_did_not_end_is_done_again(stage: Stage, tmp_path: Path) -> None:
    """The follower is ended amid the command for the first event."""
    hang = Execution(["sh", "-c", f"touch {tmp_path}/begun; exec sleep 600"], at_once=1, limit_s=600)
    done = Execution(["sh", "-c", f"echo $NODEAGENT_SEQ >> {tmp_path}/done"], at_once=1, limit_s=600)
    positions = Positions.open(tmp_path / "positions")
    async with crew(at("a", stage.socket), positions=positions) as followers:
        await until(lambda: followers.whats("a") == ["state"])
    async with crew(at("a", stage.socket), positions=positions, execution=hang):
        await stage.commit(event(), cleared())
        await until((tmp_path / "begun").exists)
    async with crew(at("a", stage.socket), positions=positions, execution=done):
        await until(lambda: (tmp_path / "done").exists() and (tmp_path / "done").read_text() == "1\n2\n")
    positions.close()


async def test_a_command_that_hangs_holds_up_its_own_node_only(
    stages: dict[str, Stage], tmp_path: Path
) -> None:
    command = f'test "$NODEAGENT_NODE" = b || until test -e {tmp_path}/go; do sleep 0.01; done'
    execution = Execution(["sh", "-c", command], at_once=2, limit_s=600)
    async with crew(
        *(at(name, each.socket) for name, each in stages.items()), execution=execution
    ) as followers:
        await until(lambda: followers.whats("a") == followers.whats("b") == ["state"])
        for each in stages.values():
            await each.commit(event(), cleared())
        await followers.until_events("b", 1, 2)
        assert followers.seqs("a") == []
        (tmp_path / "go").touch()
        await followers.until_events("a", 1, 2)


async def test_a_stream_that_cannot_go_on_tells_the_whole_state(stage: Stage) -> None:
    """The disk fails: what was committed may be numbered anew, under another epoch."""
    async with crew(at("a", stage.socket)) as followers:
        await until(lambda: followers.whats("a") == ["state"])
        await stage.commit(event())
        await followers.until_events("a", 1)
        stage.publish_in_epoch(9, cleared())
        await until(lambda: followers.whats("a") == ["state", "event", "event", "state"])
        news = followers.shown[-1]
        assert isinstance(news.value, Snapshot)
        assert news.value.position.epoch == 9
        assert followers.of("a").verdict is Verdict.ALLOW


async def test_what_is_not_asked_for_is_not_reported_and_counts_all_the_same(
    stage: Stage, tmp_path: Path
) -> None:
    positions = Positions.open(tmp_path / "positions")
    async with crew(at("a", stage.socket), kinds=[EventKind.CLEARED], positions=positions) as followers:
        await until(lambda: followers.whats("a") == ["state"])
        await stage.commit(event(), cleared(), event())
        await until(lambda: (positions.of("a") or stage.feed.current).seq == 3)
        assert followers.seqs("a") == [2]
        assert followers.of("a").verdict is Verdict.ISOLATE
    positions.close()


async def test_devices_that_come_or_go_are_listed_again(stage: Stage) -> None:
    async with crew(at("a", stage.socket)) as followers:
        await until(lambda: followers.whats("a") == ["state"])
        stage._devices["gpu9"] = samples.device(event(device="gpu9"))
        await stage.commit(event(device="gpu1", kind=EventKind.DEVICE_SEEN))
        await until(
            lambda: {part.name for part in followers.of("a").parts.values()} == {"node", "gpu1", "gpu9"}
        )


async def test_a_node_that_moves_has_one_command_at_a_time(stage: Stage, tmp_path: Path) -> None:
    log, moved = tmp_path / "log", tmp_path / "moved.sock"
    moved.symlink_to(stage.socket)
    command = (
        f"trap 'kill $!; sleep 0.5; echo end >> {log}; exit' TERM; echo begin >> {log}; sleep 600 & wait"
    )
    execution = Execution(["sh", "-c", command], at_once=2, limit_s=600)
    async with crew(at("a", stage.socket), execution=execution) as followers:
        await until(lambda: log.exists() and log.read_text() == "begin\n")
        followers.follow(at("a", moved))
        await until(lambda: len(log.read_text().split()) == 3)
        assert log.read_text().split() == ["begin", "end", "begin"]


async def test_nodes_may_come_and_go_and_the_others_are_not_disturbed(stages: dict[str, Stage]) -> None:
    a, b = (at(name, each.socket) for name, each in stages.items())
    async with crew(a) as followers:
        await until(lambda: followers.whats("a") == ["state"])
        followers.follow(a, b)
        await until(lambda: followers.whats("b") == ["state"])
        followers.follow(b)
        assert set(followers.node_states.states) == {"b"}
        for each in stages.values():
            await each.commit(event())
        await followers.until_events("b", 1)
        await stages["b"].commit(cleared())
        await followers.until_events("b", 1, 2)
        assert followers.seqs("a") == []
        assert followers.whats("b") == ["state", "event", "event"]


async def test_a_node_that_refuses_is_reported_and_followed_once_it_does_not(
    place: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "REFUSED_PAUSE_S", 0.05)
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    own = authority.issue("scheduler.example.org")
    files = ClientCertificateFiles(
        authorities=authority.certificate, certificate=own.certificate, key=own.key
    )
    stage = Stage(place, configured(authority, server, roles={}))
    await stage.open()
    port = stage.server.tcp_port
    node = Endpoint(name="a", address=f"127.0.0.1:{port}")
    async with crew(node, connect=connecting(Credentials(files))) as followers:
        await until(lambda: followers.whats("a") == ["refuses"])
        assert followers.of("a").reason == (
            "PERMISSION_DENIED: certificate scheduler.example.org may not read:"
            " grpc.roles gives scheduler.example.org no role"
        )
        await stage.close()
        allowing = configured(authority, server, ROLES)
        stage = Stage(place, msgspec.structs.replace(allowing, listen=f"127.0.0.1:{port}"))
        await stage.open()
        await until(lambda: followers.whats("a")[-2:] == ["back", "state"])
    await stage.close()


async def test_a_certificate_for_another_name_is_no_node_of_this_name(
    place: Path, authority: Authority
) -> None:
    """As for ``dns:NAME``: whatever the address is, the certificate must be for the name."""
    server = authority.issue("node.example.org", alternative="DNS:nodes.example.org")
    own = authority.issue("scheduler.example.org")
    files = ClientCertificateFiles(
        authorities=authority.certificate, certificate=own.certificate, key=own.key
    )
    stage = Stage(place, configured(authority, server))
    await stage.open()
    address = f"127.0.0.1:{stage.server.tcp_port}"
    good = Endpoint(name="good", address=address, certificate_name="nodes.example.org")
    bad = Endpoint(name="bad", address=address, certificate_name="others.example.org")
    async with crew(good, bad, connect=connecting(Credentials(files))) as followers:
        await until(lambda: followers.whats("good") == ["state"] and followers.whats("bad") == ["away"])
    await stage.close()


async def test_invalid_values_of_one_node_are_reported_and_delay_no_other(
    stage: Stage, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two events, of which the second has a time beyond all years; it is sent as often as it is asked for."""
    monkeypatch.setattr(follower, "REFUSED_PAUSE_S", 0.05)
    events = [types_pb2.Event(seq=1), types_pb2.Event(seq=2)]
    events[1].at.seconds = 1 << 60
    batch = pb.WatchResponse(store_id={"uuid": "a", "epoch": 1}, batch={"events": events})
    async with sending(place / "odd.sock", batch.SerializeToString()) as asked:
        async with crew(at("odd", place / "odd.sock"), at("a", stage.socket)) as followers:
            await until(lambda: len(asked) > 1)
            assert followers.of("odd").reason.startswith("what it sends cannot be read: ")
            assert {request.after_seq for request in asked} == {0}
            await until(lambda: followers.whats("a") == ["state"])
            await stage.commit(event())
            await followers.until_events("a", 1)
        assert followers.whats("odd") == ["refuses"]


async def test_a_node_that_names_devices_without_end_is_refused_and_no_more_is_kept(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "REFUSED_PAUSE_S", 0.05)
    events = [
        types_pb2.Event(seq=seq, device=f"gpu{seq}", device_id=f"id{seq}") for seq in range(1, MAX_PARTS + 2)
    ]
    batch = pb.WatchResponse(store_id={"uuid": "a", "epoch": 1}, batch={"events": events})
    async with sending(place / "odd.sock", batch.SerializeToString()) as asked:
        async with crew(at("odd", place / "odd.sock")) as followers:
            await until(lambda: len(asked) > 1)
            odd = followers.of("odd")
        assert (odd.contact, len(odd.parts)) == (Contact.REFUSES, 0)
        assert (
            odd.reason
            == "what it sends cannot be read: it names more than 1024 devices, and no daemon has more"
        )


@pytest.mark.parametrize("payload", [{"batch": {}}, {"bookmark": {"seq": 7}}, {"snapshot": {"seq": 7}}])
async def test_a_store_has_no_id_without_end(
    place: Path, monkeypatch: pytest.MonkeyPatch, payload: dict[str, Any]
) -> None:
    """It is kept, written down with each position, and sent back."""
    monkeypatch.setattr(follower, "REFUSED_PAUSE_S", 0.05)
    message = pb.WatchResponse(store_id={"uuid": "a" * 129, "epoch": 1}, **payload)
    async with sending(place / "odd.sock", message.SerializeToString()) as asked:
        async with crew(at("odd", place / "odd.sock")) as followers:
            await until(lambda: len(asked) > 1)
            odd = followers.of("odd")
        assert (odd.contact, odd.position) == (Contact.REFUSES, None)
        assert odd.reason == "what it sends cannot be read: the id of its store has more than 128 characters"


async def test_bytes_that_are_no_message_are_no_answer(place: Path) -> None:
    async with sending(place / "odd.sock", b"\xff\xff"), crew(at("odd", place / "odd.sock")) as followers:
        await until(lambda: followers.whats("odd") == ["away"])
        assert followers.of("odd").reason == "INTERNAL: the answer is not a message of this method"
