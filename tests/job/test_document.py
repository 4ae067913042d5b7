"""docs/jobs.md names what there is: keys, ranges, variables, statuses, events; and its program beats."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from nodeagent.client import EventKind
from nodeagent.core.model import Recommendation
from nodeagent.job import model
from nodeagent.job.model import Counts, ExitStatus, Policy, RunReason, RunRequest, Wish
from nodeagent.job.policy import keys
from nodeagent.job.policy.arguments import parse
from nodeagent.job.sample import Beat, ProgramPhase
from nodeagent.job.watching.beats import BeatSocket
from tests.documents import ROOT, blocks, orders, prose
from tests.waiting import wait_until

DOCUMENT: Final = ROOT / "docs" / "jobs.md"


def rows() -> list[list[str]]:
    """The cells of each row of its tables, without the marks of code."""
    lines = (line for line in prose(DOCUMENT).splitlines() if line.startswith("| "))
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines]


def test_it_has_every_key_of_a_policy_with_what_is_right_for_it() -> None:
    shown = {cells[0]: cells[1] for cells in rows() if len(cells) == 4}

    assert {key.name: key.form.right for key in keys.KEYS}.items() <= shown.items()
    assert len([each for each in shown if keys.named(each)]) == len(keys.KEYS)


def test_it_says_what_holds_where_a_key_is_not_given() -> None:
    shown = {cells[0]: cells[2] for cells in rows() if len(cells) == 4}
    ours = {key.name: getattr(Policy(), key.field) for key in keys.KEYS}

    assert {name: shown[name] for name in ours} == {name: words(value) for name, value in ours.items()}


def words(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value / 60:g}m" if value % 60 == 0 and value > 60 else f"{value:g}s"
    return "none" if value in (None, ()) else str(getattr(value, "value", value))


def test_it_has_every_annotation_that_is_understood() -> None:
    known = {*keys.BY_ANNOTATION, *keys.STRATEGIES, keys.POD_RETRY_NUM}
    known |= {keys.FAULT_RETRY_TIMES, keys.HANG_DETECT_TIME}
    named = set(re.findall(r"`([\w/-]+)`", prose(DOCUMENT)))

    assert known - named == set()


def test_it_has_every_variable_of_a_run_and_every_reason_for_one() -> None:
    variables = model.variables_of_run(
        run=1, execution=1, why=RunReason.FIRST, counts=Counts(), job="slurm:7.0"
    )
    shown = {cells[0]: cells[1] for cells in rows() if len(cells) == 2}

    assert variables.keys() - shown.keys() == set()
    assert shown["NODEAGENT_WHY"].endswith(": " + ", ".join(each.value for each in RunReason))


@pytest.mark.parametrize("document", [DOCUMENT, ROOT / "README.md"], ids=["jobs", "readme"])
def test_every_command_that_it_runs_is_behind_options_that_there_are(document: Path) -> None:
    shown = [words[2:] for words in orders(document) if words[:2] == ["job", "run"] and "--" in words]

    assert shown
    assert [parse(words).command for words in shown] == [
        tuple(words[words.index("--") + 1 :]) for words in shown
    ]


def test_it_has_every_status_event_and_recommendation() -> None:
    first = {cells[0] for cells in rows()}

    assert {str(each.value) for each in ExitStatus} - first == set()
    assert {each.value for each in EventKind if each.value.startswith("job_")} - first == set()
    assert {each.value for each in Recommendation} - first == set()


def test_its_program_learns_what_a_fault_asks_for(tmp_path: Path) -> None:
    beats = BeatSocket(str(tmp_path / "beats"))
    wanted = RunRequest(
        wish=Wish.RUN, run=1, handling="RERUN_REQUEST", handling_chip="npu3", handling_code="80CB8009"
    )
    with subprocess.Popen(
        [sys.executable, "-u", "-c", blocks("python", DOCUMENT)[1]],
        env={**os.environ, "PYTHONPATH": str(ROOT), "NODEAGENT_BEAT": beats.path},
        stdout=subprocess.PIPE,
    ) as program:
        wait_until(lambda: beats.take(0.0) or beats.subscriptions)
        beats.send(wanted)
        assert program.stdout is not None
        line = program.stdout.readline()
        program.kill()
    beats.close()

    assert line == b"RERUN_REQUEST npu3 80CB8009\n"
    assert line.decode().strip() in DOCUMENT.read_text()


def test_its_program_tells_each_of_its_steps(tmp_path: Path) -> None:
    beats = BeatSocket(str(tmp_path / "beats"))
    ran = subprocess.run(
        [sys.executable, "-c", blocks("python", DOCUMENT)[0]],
        env={**os.environ, "PYTHONPATH": str(ROOT), "NODEAGENT_BEAT": beats.path},
        check=True,
        capture_output=True,
    )
    found = beats.take(0.0)
    beats.close()

    assert ran.stderr == b""
    assert found[0] == Beat(t_s=0.0, phase=ProgramPhase.LOAD)
    assert [each.step for each in found[1:4]] == [0, 1, 2]
