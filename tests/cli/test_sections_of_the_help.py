"""The help lists every command, in sections, and each is where the list says."""

from collections.abc import Iterator
from importlib import import_module

import click

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
