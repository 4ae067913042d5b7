import json
from itertools import islice
from pathlib import Path

import pytest

from nodeagent.job.series import SampleSeries, header_line, row_line
from tests.cli.conftest import Nodeagent
from tests.cli.documented import documented
from tests.job.hang.hangs import HANGS
from tests.job.hang.lookalikes import LOOKALIKES
from tests.job.slow import parts as slow
from tests.job.slow.cases import SLOW


def written(folder: Path, made: SampleSeries) -> Path:
    path = folder / "samples.jsonl"
    path.write_text(header_line(made.header) + "".join(map(row_line, made.rows)))
    return path


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("hung"), HANGS.cases["npu: all ranks wait"].series())


@pytest.fixture
def begun(hung: Path, tmp_path: Path) -> Path:
    """The header and the first sample of it."""
    path = tmp_path / "samples.jsonl"
    with hung.open() as lines:
        path.write_text("".join(islice(lines, 2)))
    return path


def test_a_recorded_hang_is_shown_with_its_seconds_and_why(nodeagent: Nodeagent, hung: Path) -> None:
    ran = nodeagent("job", "replay", hung, "-o", "json")
    assert (ran.status, ran.err) == (0, "")
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert [(each["at_s"], each["what"], each["acts"], each["since_s"]) for each in found] == [
        (4500.0, "suspected", False, 900.0),
        (5400.0, "confirmed", True, 1800.0),
    ]
    assert found[1]["why"] == "4 ranks are quiet, chips are flat (4 at 0 %)"
    assert set(found[0]) == documented()["job replay"]


def test_a_slow_rank_is_shown_with_what_was_measured(nodeagent: Nodeagent, tmp_path: Path) -> None:
    recorded = written(tmp_path, slow.series("replayed", SLOW["half the speed"]))
    ran = nodeagent("job", "replay", recorded, "-o", "json")
    (found,) = [json.loads(line) for line in ran.out.splitlines()]
    assert (found["what"], found["acts"], found["who"]) == ("slow", False, "rank 2")
    assert 0.45 < float(found["evidence"]["score"]) < 0.55
    assert set(found) == documented()["job replay"]
    (line,) = nodeagent("job", "replay", recorded).out.splitlines()
    assert ": slow (only reported): rank 2 (pid 202, chip2) holds up its peers: it takes " in line


def test_as_text_each_finding_is_a_line(nodeagent: Nodeagent, hung: Path) -> None:
    ran = nodeagent("job", "replay", hung, "--set", "mode=notify")
    assert [line.partition(", still for")[0] for line in ran.out.splitlines()] == [
        "4500 s: suspected",
        "5400 s: confirmed (only reported)",
    ]


def test_a_setting_takes_the_place_of_the_file_s(nodeagent: Nodeagent, hung: Path) -> None:
    ran = nodeagent("job", "replay", hung, "--set", "hang_time_s=600", "-o", "json")
    assert json.loads(ran.out.splitlines()[-1])["at_s"] == 4200.0


def test_nothing_is_shown_of_a_healthy_run(nodeagent: Nodeagent, tmp_path: Path) -> None:
    healthy = written(tmp_path, LOOKALIKES.cases["a graph is compiled in a child"].series())
    ran = nodeagent("job", "replay", healthy)
    assert (ran.status, ran.out, ran.err) == (0, "", "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("hang_time=5", "--set hang_time=5: KEY=VALUE, where KEY is one of hang_time_s, period_s,"),
        ("hang_time_s", "--set hang_time_s: KEY=VALUE"),
        ("hang_time_s=x", "--set hang_time_s=x: hang_time_s: a number, not 'x'"),
        ("hang_time_s=-1", "hang_time_s: greater than 0, not -1.0; set it with --set"),
        ("hang_time_s=60", "period_s: 10 is too long for hang_time_s 60: at most 5"),
        ("mode=kill", "--set mode=kill: mode: off, notify, restart, not 'kill'"),
    ],
)
def test_a_wrong_setting_is_refused(nodeagent: Nodeagent, begun: Path, change: str, said: str) -> None:
    ran = nodeagent("job", "replay", begun, "--set", change)
    assert ran.status == 2
    assert said in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "empty; the first line is the header with name, T_min, period_s and kind"),
        (b"\xff\n", "not JSON lines in UTF-8"),
        (b'{"name": "x", "T_min": 30}\n{"t_s": "1"}\n', "line 2: t_s: a number, not '1'"),
    ],
)
def test_a_file_that_is_no_series_is_refused(
    nodeagent: Nodeagent, tmp_path: Path, text: bytes, said: str
) -> None:
    path = tmp_path / "series.jsonl"
    path.write_bytes(text)
    ran = nodeagent("job", "replay", path)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"nodeagent: {path}: ")
    assert said in ran.err


def test_a_file_that_is_not_there_is_named(nodeagent: Nodeagent, tmp_path: Path) -> None:
    ran = nodeagent("job", "replay", tmp_path / "none")
    assert (ran.status, ran.err) == (1, f"nodeagent: {tmp_path}/none: No such file or directory\n")
