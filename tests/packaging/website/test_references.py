"""The references of the site have everything that there is, each with its text."""

import re
from collections.abc import Iterator, Mapping

import click
import pytest
from google.protobuf.descriptor import FileDescriptor

from nodeagent.cli.main import main
from nodeagent.config.load import SECTIONS
from nodeagent.core.catalog.settings import Settings
from nodeagent.messages.pb import control_service_pb2, fault_service_pb2, types_pb2
from nodeagent.tables.load import load_catalog
from nodeagent.tables.sections.schema import RowForm
from nodeagent.toml.fields import requirements
from tests.documents import ROOT
from website import from_codes, from_commands, from_forms, from_protos

FILES = {
    "control_service.md": control_service_pb2.DESCRIPTOR,
    "fault_service.md": fault_service_pb2.DESCRIPTOR,
    "types.md": types_pb2.DESCRIPTOR,
}


@pytest.fixture(scope="module")
def api() -> Mapping[str, str]:
    return from_protos.pages()


def test_the_api_has_a_page_for_each_file(api: Mapping[str, str]) -> None:
    assert api.keys() == FILES.keys()


@pytest.mark.parametrize("name", FILES)
def test_the_api_has_each_method_and_each_field_with_its_type(api: Mapping[str, str], name: str) -> None:
    missing = [line for line in _of(FILES[name]) if line not in api[name]]

    assert missing == []


def _of(file: FileDescriptor) -> Iterator[str]:
    for service in file.services_by_name.values():
        yield from (f"### {service.name}.{method.name}\n" for method in service.methods)
    for message in file.message_types_by_name.values():
        yield f"## {message.name}\n"
        yield from (f"| `{field.name}` | " for field in message.fields)
    for enum in file.enum_types_by_name.values():
        yield from (f"| `{value.name}` | {value.number} | " for value in enum.values)


def test_the_api_links_types_of_other_files(api: Mapping[str, str]) -> None:
    links = {link for page in api.values() for link in re.findall(r"\]\((\w+\.md)#(\w+)\)", page)}
    headings = {
        (name, heading.replace(".", "").lower())
        for name, page in api.items()
        for heading in re.findall(r"^##+ ([\w.]+)$", page, flags=re.MULTILINE)
    }

    assert ("types.md", "device") in links
    assert links - headings == set()


def test_the_text_of_a_field_is_its_comment(api: Mapping[str, str]) -> None:
    assert "| `node_id` | string | The node's lasting id: its machine-id. |" in api["types.md"]


def test_every_command_has_its_help() -> None:
    page = from_commands.page()
    shown = re.findall(r"^### (nodeagent .*)$", page, flags=re.MULTILINE)

    assert sorted(shown) == sorted(_commands(click.Context(main, info_name="nodeagent")))
    assert "--in-place" in page


def _commands(context: click.Context) -> Iterator[str]:
    if isinstance(group := context.command, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            inner = click.Context(command, info_name=name, parent=context)
            yield inner.command_path
            yield from _commands(inner)


def test_every_key_of_the_configuration_is_there() -> None:
    page = from_forms.configuration_page()
    keys = {key for form in SECTIONS.values() for key in requirements(form)}

    assert {key for key in keys if key not in page} == set()
    assert '- `announce = "30s"`: a duration from "5s" to "90s"\n' in page


def test_every_key_of_a_row_is_there() -> None:
    page = from_forms.tables_page()

    assert [key for key in requirements(RowForm) if f"| `{key}` | " not in page] == []


def test_every_code_is_on_the_page_of_its_table() -> None:
    pages = from_codes.pages()
    rows = load_catalog([ROOT / "fault_codes"], Settings()).catalog.rows
    lines = [line for page in pages.values() for line in page.splitlines()]
    shown = {found[1] for line in lines if (found := re.match(r"\| `([^`]+)` \| ", line))}

    assert shown == {row.code for row in rows.values()}
    assert "| `XID_79` | GPU has fallen off the bus | " in pages["xid.md"]
