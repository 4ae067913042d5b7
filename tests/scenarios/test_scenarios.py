"""Runs every scenario in the folders beside this file against the real engine and compares its output.

``pytest tests/scenarios --update`` rewrites the output; the difference is then read like code.
"""

import re
from pathlib import Path

import pytest

from tests.scenarios.script import performed
from tests.scenarios.stage import Stage

FOLDER = Path(__file__).parent
SCENARIOS = sorted(FOLDER.glob("*/*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_story_plays_as_written(path: Path, request: pytest.FixtureRequest) -> None:
    written = path.read_text()
    performed_now = performed(written, Stage().perform)
    if request.config.getoption("--update"):
        path.write_text(performed_now)
    else:
        assert performed_now == written


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
@pytest.mark.parametrize("how", ["replayed", "compacted"])
def test_the_output_is_the_same_though_the_daemon_dies_after_every_line(path: Path, how: str) -> None:
    """Each next process knows what was stored, or what compaction made of it."""
    written = path.read_text()
    assert performed(written, Stage(after_each=(how,)).perform) == written


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_whoever_follows_the_events_knows_every_verdict_after_every_line(path: Path) -> None:
    stage = Stage()

    def perform(command: str) -> list[str]:
        lines = stage.perform(command)
        assert stage.wrongly_published() == [], command
        return lines

    performed(path.read_text(), perform)


def test_the_list_of_behaviours_names_every_scenario_and_no_other() -> None:
    listed = re.findall(r"\]\((\w+/\w+\.txt)\)", (FOLDER / "README.md").read_text())
    assert sorted(listed) == [str(path.relative_to(FOLDER)) for path in SCENARIOS]
