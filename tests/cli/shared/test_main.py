"""The help lists every command, in sections, and each is where the list says.

What ``nodeagent version`` says: of a package its commit and build, of all else that there are none.
"""

import platform
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from nodeagent import __version__, build
from nodeagent.build import Build
from nodeagent.cli.main import JOB, PARTS, SECTIONS, SLURM
from tests.cli.conftest import Nodeagent

LISTED = [*PARTS.items(), *JOB.parts.items(), *SLURM.parts.items()]


def test_a_command_is_called_as_it_is_listed() -> None:
    assert [part.load(name).name for name, part in LISTED] == [name for name, _ in LISTED]


def test_every_command_that_a_module_defines_is_listed() -> None:
    loaded = {id(part.load(name)) for name, part in LISTED}
    modules = {part.module for _, part in LISTED} - {"nodeagent.cli.main"}

    assert [
        each.name for module in modules for each in commands_of_no_group(module) if id(each) not in loaded
    ] == []


def test_the_help_lists_the_commands_by_section(nodeagent: Nodeagent) -> None:
    lines = nodeagent("--help").out.splitlines()

    for heading, listed in SECTIONS:
        begin = lines.index(f"{heading}:") + 1
        assert [line.split()[0] for line in lines[begin : begin + len(listed)]] == list(listed)


def commands_of_no_group(module: str) -> Iterator[click.Command]:
    values = list(vars(import_module(module)).values())
    values += [each for value in values if isinstance(value, dict) for each in value.values()]
    commands = [value for value in values if isinstance(value, click.Command)]
    grouped = {id(each) for group in commands if type(group) is click.Group for each in within(group)}
    yield from (command for command in commands if id(command) not in grouped)


def within(group: click.Group) -> Iterator[click.Command]:
    for command in group.commands.values():
        yield command
        if isinstance(command, click.Group):
            yield from within(command)


COMMIT = "3d52322dabc0123456789abcdef0123456789abc"
OF_A_COMMIT = Build(
    commit=COMMIT,
    clean=True,
    committed_at="2026-11-27T23:40:00Z",
    architecture="aarch64",
    interpreter="3.13.5-2+deb13u5",
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a package has what its build wrote; it is not there yet."""
    monkeypatch.setattr(build, "FILE", tmp_path / "build.json")
    return build.FILE


def write(file: Path, **changes: Any) -> None:
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(OF_A_COMMIT, **changes)))


@pytest.mark.parametrize("word", ["version", "--version", "-V"])
def test_of_a_package_commit_and_build_are_named(nodeagent: Nodeagent, file: Path, word: str) -> None:
    write(file)

    assert nodeagent(word).out.splitlines() == [
        f"nodeagent {__version__}",
        f"commit: {COMMIT} of 2026-11-27T23:40:00Z",
        "build: aarch64, Python 3.13.5-2+deb13u5",
    ]


def test_changed_sources_and_sources_outside_of_a_repository_are_named(
    nodeagent: Nodeagent, file: Path
) -> None:
    write(file, clean=False)
    changed = nodeagent("version").out.splitlines()[1]
    write(file, commit=None, clean=None, committed_at=None)
    unknown = nodeagent("version").out.splitlines()[1]

    assert changed == f"commit: {COMMIT} of 2026-11-27T23:40:00Z, with changes that are not in it"
    assert unknown == "commit: unknown; built outside of a repository"


@pytest.mark.parametrize("word", ["version", "--version"])
def test_a_checkout_shows_that_it_has_none(nodeagent: Nodeagent, file: Path, word: str) -> None:
    assert nodeagent(word).out.splitlines() == [
        f"nodeagent {__version__}",
        "commit: unknown",
        f"build: none, not installed from a package; Python {platform.python_version()}",
    ]


def test_programs_read_the_same(nodeagent: Nodeagent, file: Path) -> None:
    (of_a_checkout,) = nodeagent("version", "-o", "json").json
    write(file)
    (of_a_package,) = nodeagent("version", "-o", "json").json

    common = {"version": __version__, "python": platform.python_version()}
    assert of_a_package == {**common, "package": True, **msgspec.to_builtins(OF_A_COMMIT)}
    assert of_a_checkout == {
        **common,
        "package": False,
        **dict.fromkeys(Build.__struct_fields__),
    }


@pytest.mark.parametrize("text", ["", "{}", '{"commit": 1}', "\udcff"])
@pytest.mark.parametrize("word", ["version", "--version"])
def test_a_damaged_file_is_named_and_what_to_do(
    nodeagent: Nodeagent, file: Path, text: str, word: str
) -> None:
    file.write_bytes(text.encode(errors="surrogateescape"))

    ran = nodeagent(word)

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"nodeagent: {file}: ")
    assert ran.err.endswith("; install the package again\n")
