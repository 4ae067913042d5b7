"""What must hold of resets in every history: limits, one at a time, no start without a reason, any crash."""

from collections import Counter

import pytest
from hypothesis import given

from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    EventKind,
    ResetStage,
    Tick,
)
from tests.core.resets.histories import (
    CATALOGS,
    History,
    assert_same_future,
    begin,
    histories,
    moderately,
    play,
)

pytestmark = pytest.mark.slow


@moderately
@given(histories())
def test_no_chip_and_no_node_is_reset_more_often_than_its_limit_allows(history: History) -> None:
    """One that was refused when it was to begin is none."""
    engine, _ = begin()
    events, actions = play(engine, history)
    refused = {
        (event.condition_id, event.evidence["attempt"])
        for event in events
        if event.kind is EventKind.ACTION_FINISHED and event.why.startswith("refused: ")
    }
    done = [each for each in actions if (each[1].id, str(each[1].attempt)) not in refused]
    settings = CATALOGS["on"].settings.reset
    for index, (at_ns, _) in enumerate(done):
        recent = [
            action for then_ns, action in done[: index + 1] if then_ns > at_ns - settings.limit_window_ns
        ]
        by_chip = Counter(device for action in recent for device in action.devices)
        assert max(by_chip.values()) <= settings.limit
        assert len(recent) <= settings.node_limit


@moderately
@given(histories())
def test_one_group_is_reset_at_a_time_and_each_reset_once(history: History) -> None:
    engine, _ = begin()
    started: Counter[str] = Counter()
    for at_ns, one in history:
        outcome = engine.step(at_ns, one)
        started.update(action.id for action in outcome.actions)
        running = [
            reset
            for reset in engine.view().resets
            if reset.stage in (ResetStage.RUNNING, ResetStage.VERIFYING)
        ]
        assert len(running) <= 1
        for action in outcome.actions:
            assert [reset.id for reset in running] == [action.id]
    assert all(count <= 2 for count in started.values())


@moderately
@given(histories())
def test_each_action_was_proposed_before_and_everything_proposed_has_one_end(history: History) -> None:
    engine, _ = begin()
    events, actions = play(engine, history)
    ends = Counter(
        event.condition_id
        for event in events
        if event.kind is EventKind.ACTION_FINISHED and "once more" not in event.why
    )
    begun = {event.condition_id for event in events if event.kind is EventKind.ACTION_STARTED}
    proposed = {event.condition_id for event in events if event.kind is EventKind.ACTION_PROPOSED}
    in_progress = {reset.id for reset in engine.view().resets if reset.stage is not ResetStage.ENDED}
    assert {action.id for _, action in actions} <= begun <= proposed
    assert proposed == set(ends) | in_progress
    assert max(ends.values(), default=1) == 1
    assert in_progress.isdisjoint(ends)


@moderately
@given(histories())
def test_a_hold_of_a_reset_lasts_as_long_as_the_reset(history: History) -> None:
    engine, _ = begin()
    for at_ns, one in history:
        engine.step(at_ns, one)
        view = engine.view()
        in_progress = {reset.id for reset in view.resets if reset.stage is not ResetStage.ENDED}
        for hold in view.holds:
            if hold.owner == "nodeagent":
                assert hold.id.partition("!")[2] in in_progress


@moderately
@given(histories(), histories(4))
def test_a_crash_at_any_point_changes_nothing_of_what_is_emitted_and_done_later(
    past: History, future: History
) -> None:
    engine, log = begin()
    for at_ns, one in past:
        log += [(at_ns, record) for record in engine.step(at_ns, one).records]
    rebuilt = Engine(CATALOGS)
    for at_ns, one in log:
        rebuilt.replay(at_ns, one)
    rebuilt.resume(engine.now_ns)
    assert_same_future(engine, rebuilt, future)


@moderately
@given(histories(), histories(4))
def test_a_compacted_history_has_the_same_future(past: History, future: History) -> None:
    engine, _ = begin()
    play(engine, past)
    compacted = Engine(CATALOGS)
    for carried in engine.carry():
        compacted.replay(engine.now_ns, carried)
    compacted.resume(engine.now_ns)
    assert compacted.carry() == engine.carry()
    assert_same_future(engine, compacted, future)


@moderately
@given(histories())
def test_what_is_not_stored_changed_nothing(history: History) -> None:
    (of_all, _), (of_stored, _) = begin(), begin()
    for at_ns, one in history:
        outcome = of_all.step(at_ns, one)
        of_stored.step(at_ns, outcome.records[0] if outcome.records else Tick())
    assert of_all.carry() == of_stored.carry()
