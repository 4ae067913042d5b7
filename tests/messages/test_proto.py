"""The API keeps to buf's STANDARD and COMMENTS rules, and its code is generated whole or not at all."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

from nodeagent.messages import generate
from tests.buf import BUF

PACKAGE = "nodeagent.v1"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[FileDescriptorProto]:
    out = tmp_path_factory.mktemp("proto") / "api.binpb"
    well_known = Path(protoc.__file__).parent / "_proto"
    arguments = ["protoc", f"-I{generate.PROTO_ROOT}", f"-I{well_known}", "--include_source_info"]
    names = [str(path) for path in generate.sources()]
    assert protoc.main([*arguments, f"--descriptor_set_out={out}", *names]) == 0
    return list(FileDescriptorSet.FromString(out.read_bytes()).file)


def test_files_are_in_the_folder_of_their_package(files: list[FileDescriptorProto]) -> None:
    for file in files:
        assert (file.package, file.syntax) == (PACKAGE, "proto3")
        assert re.fullmatch(r"nodeagent/v1/[a-z][a-z_]*\.proto", file.name)


def test_enums_begin_with_unspecified_and_prefix_their_values(files: list[FileDescriptorProto]) -> None:
    for enum in (each for file in files for each in file.enum_type):
        prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper()
        assert (enum.value[0].number, enum.value[0].name) == (0, f"{prefix}_UNSPECIFIED")
        assert all(re.fullmatch(rf"{prefix}_[A-Z0-9_]+", value.name) for value in enum.value)


def test_each_method_has_a_request_and_a_response_of_its_own(files: list[FileDescriptorProto]) -> None:
    services = [service for file in files for service in file.service]
    assert [service.name for service in services] == ["ControlService", "FaultService"]
    for method in (method for service in services for method in service.method):
        assert method.input_type == f".{PACKAGE}.{method.name}Request"
        assert method.output_type == f".{PACKAGE}.{method.name}Response"


def test_messages_and_fields_are_named_as_usual(files: list[FileDescriptorProto]) -> None:
    for message in (each for file in files for each in file.message_type):
        assert re.fullmatch(r"[A-Z][A-Za-z]*", message.name)
        assert all(re.fullmatch(r"[a-z][a-z_]*", field.name) for field in message.field)


def test_every_response_names_its_node(files: list[FileDescriptorProto]) -> None:
    responses = [each for file in files for each in file.message_type if each.name.endswith("Response")]
    assert len(responses) == 28
    for response in responses:
        first = response.field[0]
        assert (first.name, first.number, first.type_name) == ("node", 1, f".{PACKAGE}.NodeIdentity")


def test_everything_has_a_comment(files: list[FileDescriptorProto]) -> None:
    for file in files:
        commented = {
            tuple(location.path)
            for location in file.source_code_info.location
            if location.leading_comments.strip()
        }
        assert set(_paths(file)) <= commented


def _paths(file: FileDescriptorProto) -> list[tuple[int, ...]]:
    """Where messages, fields, enums, values, services and methods stand, as source info counts."""
    paths: list[tuple[int, ...]] = []
    parts = (
        (4, [len(message.field) for message in file.message_type], 2),
        (5, [len(enum.value) for enum in file.enum_type], 2),
        (6, [len(service.method) for service in file.service], 2),
    )
    for kind, sizes, member in parts:
        for place, size in enumerate(sizes):
            paths += [(kind, place), *((kind, place, member, each) for each in range(size))]
    return paths


@pytest.mark.slow
def test_buf_itself_finds_nothing() -> None:
    found = subprocess.run(
        [BUF, "lint"], cwd=generate.PROTO_ROOT, capture_output=True, text=True, check=False
    )
    assert (found.stdout, found.stderr, found.returncode) == ("", "", 0)


def test_the_generated_code_is_what_the_proto_files_say(tmp_path: Path) -> None:
    fresh = tmp_path / "pb"
    generate.generate(fresh)
    names = sorted(path.name for path in fresh.iterdir())
    assert names == sorted(path.name for path in generate.TARGET.iterdir() if path.is_file())
    for name in names:
        assert (fresh / name).read_text() == (generate.TARGET / name).read_text()


def test_proto_files_that_protoc_refuses_leave_the_old_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    proto, target = tmp_path / "proto", tmp_path / "pb"
    shutil.copytree(generate.PROTO_ROOT, proto)
    generate.generate(target, proto)
    assert generate.is_fresh(target, proto)
    before = (target / "types_pb2.py").read_text()
    (proto / "nodeagent" / "v1" / "types.proto").write_text("syntax = nonsense;\n")
    assert not generate.is_fresh(target, proto)
    with pytest.raises(generate.GenerateError):
        generate.generate(target, proto)
    assert (target / "types_pb2.py").read_text() == before
    assert "nodeagent/v1/types.proto:1:10" in capfd.readouterr().err


def test_without_proto_files_it_shows_where_they_should_be(tmp_path: Path) -> None:
    with pytest.raises(generate.GenerateError, match=r"nodeagent/v1: no \.proto files"):
        generate.generate(tmp_path / "pb", tmp_path)
