"""The loop of a step with a clock of the test: what it looks at while a run goes on, and how often."""

from pathlib import Path
from typing import cast

import pytest

from nodeagent.job.model import SECOND_NS, Counts
from nodeagent.job.shell import state_folder
from nodeagent.job.shell.loop import ReceivedSignals
from nodeagent.job.step import process
from nodeagent.job.step.folder import StepFolder
from nodeagent.job.step.slurm import Scheduler
from nodeagent.job.step.values import Allocated, NodeOutcome, StepBegan, StepOptions

PERIOD_S = 10.0
TURNS = 20


class Night:
    """A scheduler with one node, and its starter. All is suspended for eight hours while the run goes on."""

    def __init__(self, folder: StepFolder) -> None:
        self.now_ns = 0
        self.turns = 0
        self.folder = folder

    def allocated(self, _pause: object) -> Allocated:
        return Allocated(nodes=("n1",))

    def start(self, _nodes: object, _command: object) -> "Night":
        return self

    @property
    def returncode(self) -> int:
        return 0

    def poll(self) -> int | None:
        self.turns += 1
        self.now_ns += SECOND_NS if self.turns > 1 else 8 * 3600 * SECOND_NS
        if self.turns < TURNS:
            return None
        self.folder.put_outcome(NodeOutcome(node="n1", run=1, status=0))
        return 0


def test_a_loop_that_was_suspended_does_not_make_up_for_what_it_has_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = state_folder.open_alone(tmp_path)
    night = Night(StepFolder(tmp_path))
    looks: list[str] = []
    monkeypatch.setattr(process, "now_ns", lambda: night.now_ns)
    monkeypatch.setattr(process.StepProcess, "_pause", lambda _self, _within_s: False)
    monkeypatch.setattr(StepFolder, "hang_report", lambda _self, _run, node: looks.append(node))
    loop = process.StepProcess(
        cast("ReceivedSignals", None),
        cast("Scheduler", night),
        place,
        lambda _run: ("true",),
        key="7",
        period_s=PERIOD_S,
    )
    began = StepBegan(wish=StepOptions(), nodes=("n1",), first_run=1, counts=Counts())

    status = loop.run(began)
    place.close()

    assert status == 0
    assert len(looks) <= 1 + TURNS / PERIOD_S
