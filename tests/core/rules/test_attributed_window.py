"""Counting by job and by place, against a dumb twin that looks through the whole history anew."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.model import CountedBy, Level, Window
from nodeagent.core.rules import windows
from nodeagent.core.rules.windows import gathered_evidence

TIMES, WINDOW, BURST = 3, 20, 3
BY_JOB = FrequencyRule(
    id="r", codes=("X",), times=TIMES, time_window_ns=WINDOW, level=Level.SUB_HEALTH, counted_by=CountedBy.JOB
)
BY_PLACE = replace(BY_JOB, counted_by=CountedBy.PLACE)

Occurrence = tuple[int, str, str]
"""When, whose, where; "" for what is unknown."""

_steps = st.lists(
    st.tuples(
        st.sampled_from((0, 1, 3, 4, 7, 21)),
        st.sampled_from(("a", "b", "c", "d", "")),
        st.sampled_from(("P", "P", "P", "Q", "P; Q", "")),
    ),
    max_size=30,
)


def timed(steps: list[Occurrence]) -> list[Occurrence]:
    now, out = 0, []
    for gap, job, place in steps:
        now += gap
        out.append((now, job, place))
    return out


def begun(history: list[Occurrence], job: str, burst: int) -> list[int]:
    """When each occurrence of the job began: what follows within a burst belongs to it."""
    of_job = [at for at, whose, _ in history if whose == job]
    return [at for n, at in enumerate(of_job) if n == 0 or not burst or at - of_job[n - 1] > burst]


def fires_by_job(history: list[Occurrence], burst: int) -> bool:
    now, job, _ = history[-1]
    return bool(job) and sum(at >= now - WINDOW for at in begun(history, job, burst)) >= TIMES


def fires_by_place(history: list[Occurrence]) -> bool:
    now, job, place = history[-1]
    if not job or not place:
        return False
    met: dict[str, set[str]] = {}
    for at, whose, where in history:
        if whose and where and at >= now - WINDOW:
            met.setdefault(whose, set()).update(where.split("; "))
    return sum(places == {place} for places in met.values()) >= TIMES


@settings(max_examples=400, deadline=None)
@given(_steps, st.sampled_from((0, BURST)))
def test_by_job_it_counts_as_its_twin_does(steps: list[Occurrence], burst: int) -> None:
    history, window = timed(steps), Window(device_id="d", code="X", rule="r")
    for n, (at, job, place) in enumerate(history):
        window, fired = windows.count_attributed(window, BY_JOB, at, job, place, burst)
        assert fired is fires_by_job(history[: n + 1], burst)


@settings(max_examples=400, deadline=None)
@given(_steps)
def test_by_place_it_counts_as_its_twin_does(steps: list[Occurrence]) -> None:
    history, window = timed(steps), Window(device_id="d", code="X", rule="r")
    for n, (at, job, place) in enumerate(history):
        window, fired = windows.count_attributed(window, BY_PLACE, at, job, place)
        assert fired is fires_by_place(history[: n + 1])


@pytest.mark.parametrize("rule", [BY_JOB, BY_PLACE], ids=["job", "place"])
def test_however_many_jobs_fail_a_window_stays_small(rule: FrequencyRule) -> None:
    window = Window(device_id="d", code="X", rule="r")
    for n in range(1000):
        window, _ = windows.count_attributed(window, rule, 5, f"pid {n}", f"GPC {n}")
    assert len(window.attributed) == windows.MAX_OCCURRENCES
    assert window.attributed[-1].job == "pid 999"


def test_what_another_fault_explains_is_taken_back() -> None:
    window = Window(device_id="d", code="X", rule="r")
    for at in (0, 10, 20):
        window, _ = windows.count_attributed(window, BY_JOB, at, "a")
    assert [one.at_ns for one in windows.without_near(window, 9, 1)] == [0, 20]


def test_lines_of_one_occurrence_name_all_its_places_and_the_next_begins_anew() -> None:
    first = gathered_evidence({"pid": "1", "place": "P"}, {"place": "Q"}, same_occurrence=True)
    assert first == {"pid": "1", "place": "P; Q"}
    assert gathered_evidence(first, {}, same_occurrence=True) == first
    assert gathered_evidence(first, {"pid": "2", "place": "R"}, same_occurrence=True) == {
        "pid": "2",
        "place": "R",
    }
    assert gathered_evidence(first, {"pid": "2", "place": "Q"}, same_occurrence=False) == {
        "pid": "2",
        "place": "Q",
    }
    assert gathered_evidence(first, {}, same_occurrence=False) == {}
