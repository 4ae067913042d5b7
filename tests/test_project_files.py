"""The files for forges and pre-commit: they parse, and call what the project has."""

import os
import re
import shlex
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml

from nodeagent.cli.main import main
from tests.documents import INLINE, ROOT

GITHUB: Final = ROOT / ".github"
GITLAB: Final = ROOT / ".gitlab"
TEMPLATES: Final = ("bug.md", "detection.md", "fault_code.md")
RUNS: Final = ".ci/run"
FILES: Final = (
    ROOT / ".pre-commit-config.yaml",
    ROOT / ".gitlab-ci.yml",
    *sorted(GITHUB.rglob("*.*")),
    *sorted(GITLAB.rglob("*.*")),
)


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_both_forges_run_what_any_machine_runs() -> None:
    (job,) = read(GITHUB / "workflows" / "ci.yml")["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step][-1] == RUNS
    assert read(ROOT / ".gitlab-ci.yml")["ci"]["script"] == [RUNS]
    assert os.access(ROOT / RUNS, os.X_OK)


def test_the_hooks_call_commands_that_dev_has() -> None:
    (repository,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    usage = (ROOT / "dev").read_text()
    for hook in repository["hooks"]:
        program, *words = shlex.split(hook["entry"])
        assert program == "./dev"
        assert re.search(rf"^  {re.escape(' '.join(words))}\s", usage, re.MULTILINE), hook["entry"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_foreign_host_is_named(path: Path) -> None:
    assert "://" not in path.read_text()


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_issue_has_the_same_questions_on_both_forges(name: str) -> None:
    _, front, questions = (GITHUB / "ISSUE_TEMPLATE" / name).read_text().split("---\n", 2)
    labels = yaml.safe_load(front)["labels"]
    assert (GITLAB / "issue_templates" / name).read_text() == (
        questions.lstrip("\n") + "".join(f'\n/label ~"{label}"\n' for label in labels)
    )


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_commands_that_an_issue_asks_for_exist(name: str) -> None:
    codes = INLINE.findall((GITHUB / "ISSUE_TEMPLATE" / name).read_text())
    commands = [shlex.split(code)[1:] for code in codes if code.startswith("nodeagent ")]
    assert commands
    for words in commands:
        command: click.Command = main
        with click.Context(main) as context:
            while isinstance(command, click.Group):
                found = command.get_command(context, words.pop(0))
                assert found is not None, words
                command = found
            options = {option for each in command.params for option in each.opts}
        assert {word for word in words if word.startswith("-")} <= options | {"-h"}, words
