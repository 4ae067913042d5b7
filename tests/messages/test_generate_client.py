"""The client's values, readers and blocking client follow from ``proto/`` and from the client for asyncio."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet

from nodeagent.messages import generate_client
from nodeagent.messages.generate import PROTO_ROOT, sources
from nodeagent.messages.generate_client import SOURCE, TARGET, ClientGenerateError, texts


@pytest.fixture(scope="module")
def described() -> bytes:
    return generate_client.described(PROTO_ROOT, sources())


def with_field(described: bytes, message: str, **field: object) -> bytes:
    """The descriptors with one more field of a message."""
    files = FileDescriptorSet.FromString(described)
    (found,) = [each for file in files.file for each in file.message_type if each.name == message]
    found.field.add(number=999, label=FieldDescriptorProto.LABEL_OPTIONAL, **field)
    return files.SerializeToString()


def test_what_is_there_was_made_of_the_present_sources(described: bytes) -> None:
    made = texts(described, SOURCE.read_text())

    assert made == {path.name: path.read_text() for path in modules(TARGET)}


def test_a_new_field_is_a_field_of_the_class_and_is_read(described: bytes) -> None:
    changed = with_field(described, "Hold", name="ticket", type=FieldDescriptorProto.TYPE_STRING)

    made = texts(changed, SOURCE.read_text())

    assert "\n    ticket: str\n" in made["values.py"]
    assert "\n        ticket=message.ticket,\n" in made["reading.py"]


def test_a_field_whose_message_has_no_class_is_refused(described: bytes) -> None:
    changed = with_field(
        described,
        "Hold",
        name="node",
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=".nodeagent.v1.NodeIdentity",
    )

    with pytest.raises(ClientGenerateError) as refused:
        texts(changed, SOURCE.read_text())

    assert str(refused.value) == (
        "Hold.node of the proto: no class for a NodeIdentity; add it to CLASSES or LISTS"
    )


def test_the_blocking_client_has_nothing_of_asyncio() -> None:
    made = generate_client.blocking(SOURCE.read_text())

    assert [word for word in ("async", "await", "aclosing", "Async") if word in made] == []


def modules(folder: Path) -> Iterator[Path]:
    return folder.glob("*.py")
