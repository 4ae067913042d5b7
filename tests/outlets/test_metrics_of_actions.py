"""How many resets ended, in which mode and how, as Prometheus counts it."""

from dataclasses import replace

from nodeagent.core.model import EventKind, Reset, ResetMode, ResetStage, View
from nodeagent.outlets.metrics_of_actions import ActionCounts, actions_that_go_on
from tests.outlets.samples import event


def test_ends_are_counted_by_mode_and_state() -> None:
    counts = ActionCounts()
    for mode, why in (
        ("on", "done: verified by a poll of every member"),
        ("on", "failed: npu0 did not show that it helped; once more after the cool-down"),
        ("on", "failed: npu0 did not show that it helped"),
        ("ask", "refused: nobody approved it in time"),
    ):
        counts.count(replace(event(kind=EventKind.ACTION_FINISHED), evidence={"mode": mode}, why=why))
    counts.count(replace(event(kind=EventKind.ACTION_STARTED), evidence={"mode": "on"}, why="done: no"))

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


def test_those_that_go_on_are_counted_by_stage() -> None:
    def reset(stage: ResetStage) -> Reset:
        return Reset(
            id=stage,
            asker_id="a",
            members=("a",),
            mode=ResetMode.ASK,
            stage=stage,
            proposed_ns=0,
            due_ns=None,
        )

    view = View(resets=(reset(ResetStage.ASKING), reset(ResetStage.ENDED)))
    (family,) = actions_that_go_on(view)
    assert [(each.labels, each.value) for each in family.samples] == [
        ({"kind": "reset", "mode": "ask", "stage": "asking"}, 1)
    ]
