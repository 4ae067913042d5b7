"""Each part of the rule is there for a named case: without it, the case ends wrongly."""

from collections.abc import Callable

import pytest

from nodeagent.job.hang import chips, processes, timers
from tests.job.hang.cases import Case, found_in, summary
from tests.job.hang.hangs import HANGS
from tests.job.hang.lookalikes import LOOKALIKES


@pytest.mark.parametrize("case", HANGS.cases.values(), ids=list(HANGS.cases))
def test_a_hang_is_confirmed_at_its_time(case: Case) -> None:
    assert summary(found_in(case)) == case.expected
    assert case.expected.acts_min is not None


@pytest.mark.parametrize("case", LOOKALIKES.cases.values(), ids=list(LOOKALIKES.cases))
def test_what_only_looks_like_a_hang_is_never_acted_on(case: Case) -> None:
    assert summary(found_in(case)) == case.expected
    assert case.expected.acts_min is None


Break = Callable[[pytest.MonkeyPatch], None]


def launchers_count(patch: pytest.MonkeyPatch) -> None:
    """All that is alive is a rank."""
    patch.setattr(
        processes.Members,
        "of",
        lambda _self, sample: processes.Roles(ranks=sample.processes, others=(), stopped=()),
    )


def power_and_links_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chips, "HIGH_POWER", float("inf"))
    patch.setattr(chips, "HIGH_TRAFFIC", float("inf"))


def power_is_low_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chips, "HIGH_POWER", chips.IDLE_POWER)


def other_processes_do_no_work(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(processes.Others, "measured", lambda _self, _others, _rates: "")


def each_run_is_armed(patch: pytest.MonkeyPatch) -> None:
    def armed(self: timers.Arming, began_s: float, now_s: float, *, chips_vary: bool) -> None:
        self.armed = True

    patch.setattr(timers.Arming, "measured", armed)


@pytest.mark.parametrize(
    ("removed", "name"),
    [
        (power_and_links_are_ignored, "a line of the log every ten minutes at 99 % use"),
        (power_and_links_are_ignored, "thermal throttling at 40 % of the power, with traffic"),
        (power_is_low_early, "power is capped at 60 %, the links cannot be read"),
        (other_processes_do_no_work, "a checkpoint is written by another process"),
        (other_processes_do_no_work, "a checkpoint is written by another process through a mapping"),
        (other_processes_do_no_work, "a graph is compiled in a child"),
        (other_processes_do_no_work, "a graph is compiled by children that live for seconds"),
        (other_processes_do_no_work, "loader workers fill their buffers"),
        (each_run_is_armed, "a first step of ninety minutes"),
        (each_run_is_armed, "chips that try kernels for four minutes, then a long compilation"),
    ],
)
def test_without_a_part_of_the_rule_a_healthy_run_is_taken_for_a_hang(
    removed: Break, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = LOOKALIKES.cases[name]
    removed(monkeypatch)
    assert summary(found_in(case)).acts_min is not None


@pytest.mark.parametrize(
    ("removed", "name"),
    [(launchers_count, "npu: one rank of eight asleep, the launcher still writes")],
)
def test_without_a_part_of_the_rule_a_hang_is_missed(
    removed: Break, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case: Case = HANGS.cases[name]
    removed(monkeypatch)
    assert summary(found_in(case)).acts_min is None
