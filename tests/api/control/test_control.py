"""Who may control the node: what the kernel says of the caller decides, and every call is audited."""

import asyncio
import grp
import socket
from pathlib import Path

import pytest
from google.protobuf.message import Message

from nodeagent.api.access import credentials
from nodeagent.api.control.audit import AuditReader
from nodeagent.api.control.context import Context
from nodeagent.api.control.senders import Senders
from nodeagent.api.control.service import served
from nodeagent.api.control.tables import Reloaded, Tables
from nodeagent.api.refusal import RefusalLimit
from nodeagent.api.server import CONTROL_SERVICE
from nodeagent.client import AsyncClient, ClientError
from nodeagent.config.public import PublicConfig
from nodeagent.core.model import Input
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.messages.pb import fault_service_pb2
from nodeagent.store.records import Taken
from tests.api import samples
from tests.api.peer import NOBODY, as_user
from tests.api.stage import FACTS, Stage

CONTROL_REQUESTS = [
    getattr(pb, method.input_type.name) for method in pb.DESCRIPTOR.services_by_name["ControlService"].methods
]


async def status_of(client: AsyncClient, request: object) -> tuple[str, str]:
    with pytest.raises(ClientError) as refused:
        await client.call(request)  # type: ignore[arg-type] # made from the descriptor
    return refused.value.status, refused.value.reason


async def on_control(
    stage: Stage, *requests: Message, gid: int = NOBODY, groups: str = ""
) -> list[tuple[str, str]]:
    """As nobody, on the control socket, which is opened to everybody here, so that the relay decides."""
    return await as_user(stage, NOBODY, *requests, socket=stage.control_socket, gid=gid, groups=groups)


@pytest.mark.parametrize("request_class", CONTROL_REQUESTS)
async def test_an_operator_is_reported_what_this_version_does_not_serve(
    stage: Stage, request_class: type
) -> None:
    async with stage.operator() as client:
        status, reason = await status_of(client, request_class())
    assert status == "UNIMPLEMENTED"
    assert reason.endswith("is not served by this version")


@pytest.mark.parametrize("request_class", CONTROL_REQUESTS)
async def test_no_one_is_an_operator_on_the_public_socket(stage: Stage, request_class: type) -> None:
    async with stage.client() as client:
        status, reason = await status_of(client, request_class())
    assert status == "PERMISSION_DENIED"
    assert "control calls are taken on the control socket" in reason


@pytest.mark.root
async def test_another_user_may_read_but_not_control(stage: Stage) -> None:
    answers = await on_control(stage, fault_service_pb2.GetNodeRequest(), pb.QuiesceRequest())
    assert answers == [
        ("OK", ""),
        (
            "PERMISSION_DENIED",
            "Quiesce is for operators: uid 65534 is neither root nor a member of the group nodeagent-admin",
        ),
    ]


@pytest.mark.root
async def test_a_member_of_the_operators_group_may_control(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = next(each for each in grp.getgrall() if 0 < each.gr_gid < NOBODY)
    monkeypatch.setattr(credentials, "OPERATOR_GROUP", group.gr_name)
    (as_second_group,) = await on_control(stage, pb.QuiesceRequest(), groups=f"{group.gr_gid}")
    (as_first_group,) = await on_control(stage, pb.QuiesceRequest(), gid=group.gr_gid)
    assert (as_second_group[0], as_first_group[0]) == ("UNIMPLEMENTED", "UNIMPLEMENTED")


@pytest.mark.root
async def test_who_is_in_more_groups_than_can_be_read_reads_and_does_not_control(stage: Stage) -> None:
    groups = ",".join(str(50_000 + number) for number in range(300))
    answers = await on_control(stage, fault_service_pb2.GetNodeRequest(), pb.QuiesceRequest(), groups=groups)
    assert [status for status, _ in answers] == ["OK", "PERMISSION_DENIED"]


@pytest.mark.root
async def test_every_control_call_is_audited_with_who_asked_for_what(stage: Stage) -> None:
    async with stage.operator() as operator, stage.client() as public:
        await status_of(operator, pb.IsolateDeviceRequest(device="gpu0"))
        await status_of(public, pb.ApproveActionRequest(action_id="a-1"))
    await on_control(stage, pb.ResumeRequest())
    rows = [(row[2].split(" pid")[0], *row[3:]) for row in await stage.ledger.read_audit()]
    assert rows == [
        ("uid 0", "IsolateDevice", "gpu0", "unimplemented"),
        (
            "uid 0",
            "ApproveAction",
            "a-1",
            "refused: control calls are taken on the control socket",
        ),
        (
            "uid 65534",
            "Resume",
            "",
            "refused: uid 65534 is neither root nor a member of the group nodeagent-admin",
        ),
    ]


async def test_who_comes_by_the_relays_private_way_without_the_relay_may_do_nothing(stage: Stage) -> None:
    private = _private(stage.control_socket)
    async with AsyncClient(private) as client:
        assert (await status_of(client, pb.QuiesceRequest()))[0] == "PERMISSION_DENIED"
        answer = await status_of(client, fault_service_pb2.GetNodeRequest())
    assert answer == ("PERMISSION_DENIED", "unknown may not read: connect to the control socket itself")


async def test_a_name_that_the_relay_did_not_bind_counts_for_nothing(stage: Stage) -> None:
    """A forger with access to the private socket and a name such as the relay gives."""
    forged = socket.socket(socket.AF_UNIX)
    forged.bind("\0nodeagent/0123456789abcdef/1/uid=0/gid=0/pid=1")
    forged.connect(str(_private(stage.control_socket)))
    reader, writer = await asyncio.open_unix_connection(sock=forged)
    front = socket.socket(socket.AF_UNIX)
    door = stage.socket.with_name("forger.sock")
    front.bind(str(door))

    async def carry(client_reader: asyncio.StreamReader, client_writer: asyncio.StreamWriter) -> None:
        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while chunk := await source.read(65536):
                sink.write(chunk)
                await sink.drain()
            sink.close()

        await asyncio.gather(copy(client_reader, writer), copy(reader, client_writer))

    server = await asyncio.start_unix_server(carry, sock=front)
    async with AsyncClient(door) as client:
        assert (await status_of(client, pb.QuiesceRequest()))[0] == "PERMISSION_DENIED"
    server.close()


@pytest.mark.root
def test_the_sockets_are_for_their_groups_only(stage: Stage) -> None:
    assert _mode(stage.socket) == 0o660
    assert _mode(stage.control_socket) == 0o660
    private = _private(stage.control_socket)
    assert (_mode(private.parent), _mode(private)) == (0o700, 0o600)


def _private(control_socket: Path) -> Path:
    return control_socket.with_name(f".{control_socket.name}.private") / "grpc.sock"


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_refusals_beyond_the_limit_are_counted_and_reported_with_the_next() -> None:
    now_s = 0.0
    limit = RefusalLimit(most=2, window_s=60.0, now_s=lambda: now_s)
    assert [limit.admit() for _ in range(5)] == [0, 0, None, None, None]
    now_s = 60.0
    assert [limit.admit() for _ in range(3)] == [3, 0, None]


def test_every_method_of_the_service_is_served_and_nothing_else(stage: Stage) -> None:
    context = Context(
        feed=stage.feed,
        catalog=lambda: samples.CATALOG,
        facts=FACTS,
        ask=nobody_is_asked,
        dry_run_reset=lambda _, __: None,
    )
    by_name = served(
        context, Tables(FACTS, nothing_is_reloaded), AuditReader(stage.ledger, FACTS), Senders(PublicConfig())
    )
    assert by_name.keys() == {method.name for method in CONTROL_SERVICE.methods}


async def nobody_is_asked(*_inputs: Input) -> Taken:
    raise AssertionError("no order is given")


async def nothing_is_reloaded(_dry_run: bool) -> Reloaded:
    raise AssertionError("no tables are reloaded")
