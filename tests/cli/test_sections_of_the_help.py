"""The sections of ``nodeagent --help`` are the folders of the commands."""

import importlib
from pathlib import Path

import pytest

from nodeagent.cli import commands
from nodeagent.cli.commands.job.job import PARTS
from nodeagent.cli.commands.schedulers.slurm import PARTS as PARTS_OF_SLURM
from nodeagent.cli.main import MODULES, SECTIONS
from tests.cli.conftest import Nodeagent

FOLDER = Path(commands.__path__[0])


def test_each_folder_of_commands_is_a_section_and_each_file_a_command() -> None:
    files = {f"{path.parent.name}.{path.stem}" for path in FOLDER.glob("*/*.py") if path.stem != "__init__"}
    parts_of_tables = {"files.tables_diff", "files.tables_import", "files.tables_reload"}

    parts_of_job = {f"job.{name}" for name in PARTS}
    parts_of_slurm = {f"schedulers.slurm_{name}" for name in PARTS_OF_SLURM}

    assert {
        module.removeprefix("nodeagent.cli.commands.") for module in MODULES.values()
    } | parts_of_tables | parts_of_job | parts_of_slurm == files


@pytest.mark.parametrize("name", MODULES)
def test_a_command_is_called_as_it_is_listed(name: str) -> None:
    assert importlib.import_module(MODULES[name]).command.name == name


def test_the_help_lists_the_commands_by_section(nodeagent: Nodeagent) -> None:
    lines = nodeagent("--help").out.splitlines()

    for heading, listed in SECTIONS.values():
        begin = lines.index(f"{heading}:") + 1
        assert [line.split()[0] for line in lines[begin : begin + len(listed)]] == list(listed)
