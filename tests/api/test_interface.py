"""The interface itself: what it keeps for those who were built for it before, and what it tells of itself."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any, Final

import grpc
import msgspec
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from nodeagent.api import interface
from nodeagent.config.sections import JobsConfig
from nodeagent.messages.generate import PROTO_ROOT
from nodeagent.messages.pb import control_service_pb2, fault_service_pb2, types_pb2
from nodeagent.messages.pb import fault_service_pb2 as pb
from tests.api.access.tcp import SERVER_NAMES, client, configured, opened
from tests.api.certificates import Authority
from tests.api.stage import FACTS, Stage
from tests.buf import BUF

SERVICE: Final = "nodeagent.v1.FaultService"
LIMIT_S: Final = 60.0


def version_of(kept: Path) -> tuple[int, int]:
    major, _, minor = kept.stem.partition(".")
    return int(major), int(minor)


def newest_kept() -> Path:
    return max(PROTO_ROOT.glob("kept/*.binpb"), key=version_of)


def own_files(kept: Path) -> dict[str, FileDescriptorProto]:
    files = FileDescriptorSet.FromString(kept.read_bytes()).file
    return {each.name: each for each in files if each.package == "nodeagent.v1"}


def files_now() -> dict[str, FileDescriptorProto]:
    found = {}
    for module in (types_pb2, fault_service_pb2, control_service_pb2):
        found[module.DESCRIPTOR.name] = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    return found


def without_json_names(files: dict[str, FileDescriptorProto]) -> dict[str, bytes]:
    """buf writes them into each field, protoc does not."""
    for file in files.values():
        parts = list(file.message_type)
        for message in parts:
            parts += message.nested_type
            for field in message.field:
                field.ClearField("json_name")
    return {name: file.SerializeToString(deterministic=True) for name, file in files.items()}


async def buf(*words: str | Path) -> tuple[int, str]:
    """Its exit status and all that it says."""
    process = await asyncio.create_subprocess_exec(
        BUF, *map(str, words), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    async with asyncio.timeout(LIMIT_S):
        said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


async def asked(socket: Path, method: str, **request: Any) -> tuple[int, Any]:
    """What a client answers that knows nothing of this interface but what reflection tells it."""
    status, said = await buf(
        *("curl", "--protocol", "grpc", "--http2-prior-knowledge", "--emit-defaults"),
        *("--unix-socket", socket, "--data", json.dumps(request), f"http://localhost/{method}"),
    )
    return status, said if status else json.loads(said)


def test_the_version_grows_by_one_as_soon_as_anything_is_added_to_what_is_kept() -> None:
    kept = newest_kept()
    major, minor = version_of(kept)
    changed = without_json_names(own_files(kept)) != without_json_names(files_now())
    assert (major, minor + changed) == (interface.MAJOR, interface.MINOR)


async def test_what_would_break_those_who_were_built_for_what_is_kept_is_found(tmp_path: Path) -> None:
    changed = shutil.copytree(PROTO_ROOT, tmp_path / "proto")
    types = changed / "nodeagent" / "v1" / "types.proto"
    types.write_text(types.read_text().replace("uint64 seq = 1;", "uint64 seq = 90;"))
    status, said = await buf("breaking", changed, "--against", newest_kept())
    assert (status, 'Previously present field "1" with name "seq" on message "Event"' in said) == (100, True)


async def test_a_caller_is_told_the_version_what_the_daemon_can_do_and_who_he_is(stage: Stage) -> None:
    async with stage.client() as public, stage.operator() as control:
        reader = await public.call(pb.GetNodeRequest())
        operator = await control.call(pb.GetNodeRequest())
    assert (reader.api_version.major, reader.api_version.minor) == (interface.MAJOR, interface.MINOR)
    assert list(reader.capabilities) == [
        pb.CAPABILITY_EVENTS_BY_TIME,
        pb.CAPABILITY_EVENTS_BY_CODE,
        pb.CAPABILITY_REWIND_CONSUMER,
        pb.CAPABILITY_SUPERVISED_JOBS,
    ]
    assert reader.caller == pb.Caller(identity="uid:0", role=pb.CALLER_ROLE_READER)
    assert operator.caller == pb.Caller(identity="uid:0", role=pb.CALLER_ROLE_OPERATOR)


async def test_over_tcp_a_caller_is_told_the_name_of_his_certificate(
    place: Path, authority: Authority
) -> None:
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    own = authority.issue("checker.example.org")
    async with (
        opened(place, configured(authority, server)) as stage,
        client(stage, authority, own) as reporter,
    ):
        caller = (await reporter.call(pb.GetNodeRequest())).caller
    assert caller == pb.Caller(identity="certificate:checker.example.org", role=pb.CALLER_ROLE_REPORTER)


def test_a_daemon_that_takes_no_supervisors_does_not_say_that_it_does(stage: Stage) -> None:
    config = msgspec.structs.replace(stage.config, jobs=JobsConfig(enabled=False))
    assert pb.CAPABILITY_SUPERVISED_JOBS not in interface.capabilities(config)


async def test_a_reader_learns_the_interface_by_reflection_alone(stage: Stage) -> None:
    stage.socket.chmod(0o666)
    _, node = await asked(stage.socket, f"{SERVICE}/GetNode")
    _, listed = await asked(stage.socket, f"{SERVICE}/ListEvents", limit=1, filter={"codes": ["XID_*"]})
    assert (node["node"]["nodeName"], node["caller"]["role"]) == (FACTS.node_name, "CALLER_ROLE_READER")
    assert (listed["events"], listed["more"]) == ([], False)


async def test_who_may_not_read_learns_nothing_by_reflection(stage: Stage) -> None:
    private = stage.socket.with_name(f".{stage.socket.name}.private") / "grpc.sock"

    def ask() -> None:
        # Not grpc.aio: it says INTERNAL where the refusal comes before its first message is out.
        with grpc.insecure_channel(f"unix:{private}") as channel:
            asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
            next(reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(asked, timeout=10))

    with pytest.raises(grpc.RpcError) as refused:
        await asyncio.to_thread(ask)
    assert (refused.value.code(), refused.value.details()) == (
        grpc.StatusCode.PERMISSION_DENIED,
        "unknown may not read: connect to the control socket itself",
    )
