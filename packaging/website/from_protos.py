"""The reference of the API, made of proto/: a page for each file, with the comments that its authors wrote.

protoc reads the files; its descriptors have the comments with their places (descriptor.proto,
SourceCodeInfo). No generator is used: protoc-gen-doc is a Go program that no registry for Python or Node.js
has, and sabledocs makes a site of its own, with a search of its own.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)

from website.documents import ROOT
from website.markdown import code, paragraphs, prose, table

PROTO: Final = ROOT / "proto"
_WELL_KNOWN: Final = "https://protobuf.dev/reference/protobuf/google.protobuf/#"

Place = tuple[int, ...]
"""In a file, as SourceCodeInfo.Location.path names it: numbers of fields in descriptor.proto, and indexes."""

_MESSAGES, _ENUMS, _SERVICES = 4, 5, 6
_FIELDS, _NESTED, _NESTED_ENUMS = 2, 3, 4
_METHODS, _VALUES = 2, 2


class _File:
    """One proto file, and where the types of all files are described."""

    def __init__(self, described: FileDescriptorProto, pages: Mapping[str, str]) -> None:
        self.described = described
        self._pages = pages
        self._comments = {
            tuple(each.path): each.leading_comments or each.trailing_comments
            for each in described.source_code_info.location
            if each.leading_comments or each.trailing_comments
        }
        (head, *_) = [
            each.leading_detached_comments or [each.leading_comments]
            for each in described.source_code_info.location
            if list(each.path) == [12]  # the line "syntax", before which is what the file is for
        ]
        self.purpose = "\n\n".join(head)

    def comment(self, *place: int) -> str:
        return self._comments.get(place, "")

    def link(self, full_name: str) -> str:
        """A type by its full name, with a point before it."""
        name = full_name.removeprefix(f".{self.described.package}.")
        if full_name in self._pages:
            return f"[{name}]({self._pages[full_name]}#{_anchor(name)})"
        short = full_name.rpartition(".")[2]
        return f"[{short}]({_WELL_KNOWN}{_anchor(short)})"

    def type_of(self, field: FieldDescriptorProto, entries: Mapping[str, DescriptorProto]) -> str:
        if (entry := entries.get(field.type_name)) is not None:
            key, value = entry.field
            return f"map of {self.type_of(key, {})} to {self.type_of(value, {})}"
        one = self.link(field.type_name) if field.type_name else _SCALARS[field.type]
        return f"list of {one}" if field.label == FieldDescriptorProto.LABEL_REPEATED else one


_SCALARS: Final = {
    number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()
}


def pages(folder: Path = PROTO) -> Mapping[str, str]:
    """By file name. Raises ``CalledProcessError`` where protoc refuses a file."""
    files = list(_descriptors(folder).file)
    names = {each.name: f"{Path(each.name).stem}.md" for each in files}
    places = {f".{each.package}.{type_}": names[each.name] for each in files for type_ in _types(each)}
    return {names[each.name]: _page(_File(each, places)) for each in files}


def _descriptors(folder: Path) -> FileDescriptorSet:
    sources = [str(each.relative_to(folder)) for each in sorted(folder.glob("nodeagent/v1/*.proto"))]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(folder), "--include_source_info"]
    command += ["--descriptor_set_out=/dev/stdout", *sources]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60)
    return FileDescriptorSet.FromString(done.stdout)


def _types(of: FileDescriptorProto | DescriptorProto) -> Iterator[str]:
    """The names of all messages and enums, those within others too."""
    messages = of.message_type if isinstance(of, FileDescriptorProto) else of.nested_type
    yield from (each.name for each in of.enum_type)
    for message in messages:
        if not message.options.map_entry:
            yield message.name
            yield from (f"{message.name}.{name}" for name in _types(message))


def _page(file: _File) -> str:
    described = file.described
    parts = [f"# {code(described.name)}\n\n{paragraphs(file.purpose)}\n"]
    for number, service in enumerate(described.service):
        parts += _service(file, service, (_SERVICES, number))
    for number, message in enumerate(described.message_type):
        parts += _message(file, message, message.name, (_MESSAGES, number))
    for number, enum in enumerate(described.enum_type):
        parts.append(_enum(file, enum, enum.name, (_ENUMS, number)))
    return "\n".join(parts)


def _service(file: _File, service: ServiceDescriptorProto, place: Place) -> Iterator[str]:
    yield f"## {service.name}\n\n{paragraphs(file.comment(*place))}\n"
    for number, method in enumerate(service.method):
        takes = f"{'a stream of ' * method.client_streaming}{file.link(method.input_type)}"
        gives = f"{'a stream of ' * method.server_streaming}{file.link(method.output_type)}"
        text = paragraphs(file.comment(*place, _METHODS, number))
        yield f"### {service.name}.{method.name}\n\nTakes {takes}, answers {gives}.\n\n{text}\n"


def _message(file: _File, message: DescriptorProto, name: str, place: Place) -> Iterator[str]:
    entries = {
        f".{file.described.package}.{name}.{each.name}": each
        for each in message.nested_type
        if each.options.map_entry
    }
    rows = [
        (code(field.name), file.type_of(field, entries), prose(file.comment(*place, _FIELDS, number)))
        for number, field in enumerate(message.field)
    ]
    fields = table(("field", "type", "meaning"), rows) if rows else "It has no field.\n"
    yield f"## {name}\n\n{paragraphs(file.comment(*place))}\n\n{fields}{_choices(message)}"
    for number, nested in enumerate(message.nested_type):
        if not nested.options.map_entry:
            yield from _message(file, nested, f"{name}.{nested.name}", (*place, _NESTED, number))
    for number, enum in enumerate(message.enum_type):
        yield _enum(file, enum, f"{name}.{enum.name}", (*place, _NESTED_ENUMS, number))


def _choices(message: DescriptorProto) -> str:
    """Which fields exclude each other; protoc makes a choice of each optional field, too."""
    lines = []
    for number, choice in enumerate(message.oneof_decl):
        members = [
            code(field.name)
            for field in message.field
            if field.HasField("oneof_index") and field.oneof_index == number and not field.proto3_optional
        ]
        if members:
            lines.append(f"\nAt most one of {', '.join(members)} is set ({code(choice.name)}).\n")
    return "".join(lines)


def _enum(file: _File, enum: EnumDescriptorProto, name: str, place: Place) -> str:
    rows: Sequence[tuple[str, str, str]] = [
        (code(value.name), str(value.number), prose(file.comment(*place, _VALUES, number)))
        for number, value in enumerate(enum.value)
    ]
    return f"## {name}\n\n{paragraphs(file.comment(*place))}\n\n{table(('value', 'number', 'meaning'), rows)}"


def _anchor(name: str) -> str:
    """As repository hosts and MyST name a heading."""
    return name.replace(".", "").lower()
