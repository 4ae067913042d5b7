"""How many resets ended, in which mode and how, as Prometheus counts it."""

from dataclasses import replace

from nodeagent.core.model import EventKind, Reset, ResetMode, ResetStage, View
from nodeagent.metrics.devices import ActionCounts, actions_in_progress
from tests.api.samples import event


def test_ends_are_counted_by_mode_and_outcome_whatever_they_say_to_people() -> None:
    counts = ActionCounts()
    for mode, outcome in (("on", "done"), ("on", "failed"), ("on", "failed"), ("ask", "refused")):
        evidence = {"mode": mode, "outcome": outcome}
        counts.count(replace(event(kind=EventKind.ACTION_FINISHED), evidence=evidence, why="in other words"))
    started = {"mode": "on", "outcome": "done"}
    counts.count(replace(event(kind=EventKind.ACTION_STARTED), evidence=started))

    samples = {
        (each.labels["mode"], each.labels["state"]): each.value
        for each in counts.family().samples
        if each.value
    }
    assert samples == {("on", "done"): 1, ("on", "failed"): 2, ("ask", "refused"): 1}


def test_each_way_to_end_has_a_series_from_the_start() -> None:
    family = ActionCounts().family()
    assert (family.name, len(family.samples)) == ("nodeagent_actions", 3 * 5)
    assert {each.labels["kind"] for each in family.samples} == {"reset"}


def test_those_in_progress_are_counted_by_stage() -> None:
    def reset(stage: ResetStage) -> Reset:
        return Reset(
            id=stage,
            asker_id="a",
            members=("a",),
            mode=ResetMode.ASK,
            stage=stage,
            proposed_ns=2 * 10**9,
            due_ns=None,
        )

    view = View(resets=(reset(ResetStage.ASKING), reset(ResetStage.ENDED)))
    number, since = actions_in_progress(view, 5 * 10**9)
    labels = {"kind": "reset", "mode": "ask", "stage": "asking"}
    assert (number.name, since.name) == ("nodeagent_actions_in_progress", "nodeagent_action_since_seconds")
    assert [(each.labels, each.value) for each in number.samples] == [(labels, 1)]
    assert [(each.labels, each.value) for each in since.samples] == [({"device": "a", **labels}, 7)]
