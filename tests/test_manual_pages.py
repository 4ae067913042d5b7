"""The manual pages as a build writes them: clean for mandoc and man, and whole."""

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click
import msgspec
import pytest
import yaml

from nodeagent.cli.main import main
from nodeagent.config.config import Config
from nodeagent.config.load import SECTIONS
from nodeagent.config.public import PublicConfig, SenderConfig
from nodeagent.job.policy.options import run_parser
from nodeagent.job.step.arguments import step_parser
from nodeagent.tables.rule_kinds import RULE_SECTIONS
from nodeagent.tables.sections.schema import FileForm, RowForm
from nodeagent.vendors import DRIVERS
from tests.documents import ROOT

PACKAGING: Final = ROOT / "packaging"
SUPERVISORS: Final = {"nodeagent-job-run": run_parser, "nodeagent-job-step": step_parser}
REFERENCE: Final = re.compile(r"\\fB([\w.\\@-]+)\\fR\((\d)\)")
OF_OTHERS: Final = {"systemctl.1", "journalctl.1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("man"))


def generated(folder: Path) -> Path:
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "PYTHONPATH": f"{ROOT}:{PACKAGING}"}
    subprocess.run([sys.executable, "-m", "man", folder], cwd="/", env=env, check=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def sources(folder: Path) -> Mapping[str, str]:
    """The text of each page by its name with its section."""
    return {
        path.name.removesuffix(".gz"): gzip.decompress(path.read_bytes()).decode()
        for path in folder.rglob("*.gz")
    }


@pytest.fixture(scope="module")
def shown(sources: Mapping[str, str]) -> Mapping[str, str]:
    """As a person reads them."""
    return {name: rendered(source) for name, source in sources.items()}


def rendered(source: str) -> str:
    command = ["mandoc", "-Tutf8", "-O", "width=200"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=True, timeout=60)
    return re.sub(".\b", "", done.stdout)


def commands() -> Iterator[tuple[str, click.Context]]:
    """Each with the name of its page."""
    pending = [click.Context(main, info_name="nodeagent")]
    while pending:
        context = pending.pop()
        yield context.command_path.replace(" ", "-"), context
        if isinstance(group := context.command, click.Group):
            for name in group.list_commands(context):
                command = group.get_command(context, name)
                assert command is not None
                pending.append(click.Context(command, info_name=name, parent=context))


def said(*command: str, stdout: int = subprocess.PIPE) -> str:
    """What a checker says, on its output where it is not the page itself, and on standard error."""
    env = {**os.environ, "LC_ALL": "C.UTF-8", "MANPAGER": "cat"}
    done = subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=300, env=env
    )
    return (done.stdout or "") + done.stderr


def test_mandoc_and_man_have_nothing_to_warn_of(sources: Mapping[str, str], tmp_path: Path) -> None:
    for name, source in sources.items():
        (tmp_path / name).write_text(source)
    pages = sorted(map(str, tmp_path.iterdir()))
    assert said("mandoc", "-T", "lint", "-W", "warning", *pages) == ""
    assert said("man", "--warnings", "-l", *pages, stdout=subprocess.DEVNULL) == ""


def test_each_command_has_a_page_and_each_page_is_of_something(sources: Mapping[str, str]) -> None:
    others = {"nodeagent.toml.5", "nodeagent-fault-codes.5", "nodeagent.service.8"}

    assert set(sources) == {f"{name}.1" for name, _ in commands()} | others


def test_each_option_is_on_the_page_of_its_command(shown: Mapping[str, str]) -> None:
    missing = []
    for name, context in commands():
        parameters = context.command.get_params(context)
        options = [each for option in parameters if isinstance(option, click.Option) for each in option.opts]
        if name in SUPERVISORS:
            options = [each for each in SUPERVISORS[name]()._option_string_actions if each != "--in-step"]
        words = set(re.findall(r"[\w/-]+", shown[f"{name}.1"]))
        missing += [f"{name}: {each}" for each in options if not words & {each, f"{each}/--no{each[1:]}"}]

    assert missing == []


def test_each_command_is_on_the_page_of_its_group(shown: Mapping[str, str]) -> None:
    for name, context in commands():
        if context.parent is not None:
            above = context.parent.command_path.replace(" ", "-")
            assert f"{name}(1)" in shown[f"{above}.1"]


def test_each_key_of_the_configuration_is_in_its_section_of_the_page(shown: Mapping[str, str]) -> None:
    page = shown["nodeagent.toml.5"]
    sections = dict(re.findall(r"^\[([\w.]+)\]\n(.*?)(?=^\S)", page, flags=re.MULTILINE | re.DOTALL))
    forms: dict[str, type[msgspec.Struct]] = {
        **SECTIONS,
        "public": PublicConfig,
        **{f"drivers.{name}": traits.section for name, traits in DRIVERS.items()},
    }
    missing = [
        f"{section}.{key}"
        for section, form in forms.items()
        for key in (field.encode_name for field in msgspec.structs.fields(form))
        if not re.search(rf"\b{key}\b", sections[section])
    ]

    assert missing == []
    assert {name.partition(".")[0] for name in forms} == {
        field.name for field in msgspec.structs.fields(Config)
    }
    for key in (field.encode_name for field in msgspec.structs.fields(SenderConfig)):
        assert re.search(rf"\b{key} = ", sections["public"])


def test_each_key_of_a_table_is_on_the_page_of_the_tables(shown: Mapping[str, str]) -> None:
    keys = shown["nodeagent-fault-codes.5"].partition("\nKEYS\n")[2]
    forms: list[type[msgspec.Struct]] = [FileForm, RowForm, *(kind.form for kind in RULE_SECTIONS.values())]
    for form in forms:
        for field in msgspec.structs.fields(form):
            assert re.search(rf"^ +{field.encode_name}\b", keys, flags=re.MULTILINE), field.encode_name


def test_each_variable_of_the_environment_is_on_the_first_page(shown: Mapping[str, str]) -> None:
    variables = {
        option.envvar
        for _, context in commands()
        for option in context.command.get_params(context)
        if isinstance(option, click.Option) and isinstance(option.envvar, str)
    }

    assert "NODEAGENT_SOCKET" in variables
    for each in variables | {"NODEAGENT_CONFIG"}:
        assert re.search(rf"^ +{each}$", shown["nodeagent.1"], flags=re.MULTILINE), each


def test_a_page_that_is_named_is_there(sources: Mapping[str, str]) -> None:
    named = {
        f"{name.replace(chr(92), '')}.{section}"
        for source in sources.values()
        for name, section in REFERENCE.findall(source)
    }

    assert "nodeagent-job-run.1" in named
    assert named - sources.keys() - OF_OTHERS == set()


def test_equal_sources_give_equal_bytes(folder: Path, tmp_path: Path) -> None:
    again = generated(tmp_path / "again")
    both = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*.gz")} for root in (folder, again)
    ]

    assert both[0] == both[1]


def test_the_packages_hold_each_page(folder: Path) -> None:
    for package, configuration in (("nodeagent", "nfpm"), ("nodeagent-emulator", "nfpm-emulator")):
        contents = yaml.safe_load((ROOT / f"packaging/{configuration}.yaml").read_text())["contents"]
        packed = {each["src"]: each["dst"] for each in contents if "/man/" in each["dst"]}

        assert packed == {
            f"build/${{ARCHITECTURE}}/man/{package}/{section.name}/*.gz": f"/usr/share/man/{section.name}/"
            for section in (folder / package).iterdir()
        }
