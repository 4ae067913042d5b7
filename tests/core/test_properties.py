"""What must hold for every history: found by Hypothesis, compared with folds, twins and reruns."""

from collections.abc import Iterable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    CatalogChanged,
    Event,
    EventKind,
    Handling,
    Input,
    Outcome,
    Started,
    Tick,
    Verdict,
)
from nodeagent.core.preview import compare
from nodeagent.core.reconcile import PublishedState
from tests.core.build import verdicts
from tests.core.worlds import CATALOGS, FUTURE, histories, inputs, starts

History = list[tuple[int, Input]]
moderately = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
anything = inputs | starts


def fresh() -> Engine:
    engine = Engine(CATALOGS)
    engine.step(0, CatalogChanged(digest="first"))
    engine.step(0, Started(boot_id="boot-1", version="1"))
    return engine


def play(engine: Engine, history: Iterable[tuple[int, Input]]) -> list[Outcome]:
    return [engine.step(at_ns, one) for at_ns, one in history]


def events_of(outcomes: Iterable[Outcome]) -> list[Event]:
    return [event for outcome in outcomes for event in outcome.events]


def stored(at_ns: int, outcome: Outcome) -> History:
    return [(at_ns, record) for record in outcome.records]


def replayed(log: History, engine_now_ns: int) -> Engine:
    engine = Engine(CATALOGS)
    for at_ns, one in log:
        engine.replay(at_ns, one)
    engine.resume(engine_now_ns)
    return engine


class Fold:
    """What a subscriber holds who knows nothing but the events."""

    def __init__(self) -> None:
        self.verdicts: dict[str, tuple[Verdict, Handling]] = {}
        self.open: set[str] = set()

    def add(self, event: Event) -> None:
        self.verdicts.pop(event.evidence.get("was", ""), None)
        self.verdicts[event.device_id] = (event.verdict, event.handling)
        if event.kind is EventKind.RAISED:
            assert event.condition_id not in self.open
            self.open.add(event.condition_id)
        elif event.kind is EventKind.CLEARED:
            self.open.remove(event.condition_id)


@moderately
@given(histories(anything))
def test_folding_the_events_gives_the_verdict_of_every_device_at_every_step(history: History) -> None:
    engine, fold = fresh(), Fold()
    for at_ns, one in history:
        for event in engine.step(at_ns, one).events:
            fold.add(event)
        shown = {
            device: verdict
            for device, verdict in verdicts(engine).items()
            if device in fold.verdicts or verdict != (Verdict.ALLOW, Handling.NONE)
        }
        assert fold.verdicts == shown
        assert fold.open == {condition.id for condition in engine.view().conditions}


@moderately
@given(histories(anything))
def test_a_verdict_changed_event_is_emitted_only_where_the_verdict_changed(history: History) -> None:
    engine = fresh()
    before: dict[str, tuple[Verdict, Handling]] = {}
    for event in events_of(play(engine, history)):
        if event.kind is EventKind.VERDICT_CHANGED:
            known = before.get(event.device_id, (Verdict.ALLOW, Handling.NONE))
            assert (event.verdict, event.handling) != known
        if was := event.evidence.get("was"):
            before[event.device_id] = before.pop(was, (Verdict.ALLOW, Handling.NONE))
        before[event.device_id] = (event.verdict, event.handling)


@moderately
@given(histories(anything))
def test_any_input_in_any_order_is_taken_and_no_deadline_stays_behind(history: History) -> None:
    engine = fresh()
    for at_ns, one in history:
        engine.step(at_ns, one)
        deadline_ns = engine.next_deadline()
        assert engine.now_ns == at_ns
        assert deadline_ns is None or deadline_ns > at_ns


@moderately
@given(histories(anything))
def test_equal_inputs_give_equal_outcomes_to_the_byte(history: History) -> None:
    assert repr(play(fresh(), history)) == repr(play(fresh(), history))


@moderately
@given(histories(anything))
def test_what_is_not_stored_changed_nothing(history: History) -> None:
    of_all, of_stored = fresh(), fresh()
    for at_ns, one in history:
        outcome = of_all.step(at_ns, one)
        of_stored.step(at_ns, outcome.records[0] if outcome.records else FUTURE[0][1])
    assert of_all.carry() == of_stored.carry()
    assert of_all.view() == of_stored.view()


@moderately
@given(histories(anything), histories(anything, most=12))
def test_a_crash_at_any_point_changes_nothing_emitted_later(past: History, future: History) -> None:
    uncrashed = fresh()
    log: History = [(0, CatalogChanged(digest="first")), (0, Started(boot_id="boot-1", version="1"))]
    for at_ns, one in past:
        log += stored(at_ns, uncrashed.step(at_ns, one))
    rebuilt = replayed(log, uncrashed.now_ns)
    assert_same_future(uncrashed, rebuilt, future)


@moderately
@given(histories(anything))
def test_what_was_published_is_what_a_replay_comes_to(history: History) -> None:
    engine, published = Engine(CATALOGS), PublishedState()
    log: History = [(0, CatalogChanged(digest="first"))]
    engine.step(0, log[0][1])
    for at_ns, one in history:
        outcome = engine.step(at_ns, one)
        log += stored(at_ns, outcome)
        published.add(outcome.events)
    assert replayed(log, engine.now_ns).reconcile(published) == (Outcome(), 0)


@moderately
@given(st.lists(histories(anything, most=10), min_size=2, max_size=4))
def test_restart_after_restart_replays_to_what_the_first_process_was(lives: list[History]) -> None:
    log: History = [(0, CatalogChanged(digest="first"))]
    engine, begins_ns = Engine(CATALOGS), 0
    engine.step(0, log[0][1])
    for life in lives:
        start: History = [(begins_ns, Started(boot_id="boot-1", version="1"))]
        for at_ns, one in start + [(begins_ns + at_ns, one) for at_ns, one in life]:
            log += stored(at_ns, engine.step(at_ns, one))
        rebuilt = replayed(log, engine.now_ns)
        assert rebuilt.view() == engine.view()
        engine, begins_ns = rebuilt, engine.now_ns + 7_000_000_000


@moderately
@given(histories(anything), histories(anything, most=12))
def test_a_compacted_history_has_the_same_future(past: History, future: History) -> None:
    original = fresh()
    play(original, past)
    compacted = Engine(CATALOGS)
    for carried in original.carry():
        compacted.replay(original.now_ns, carried)
    compacted.resume(original.now_ns)
    assert compacted.carry() == original.carry()
    assert_same_future(original, compacted, future)


@moderately
@given(histories(anything), st.sampled_from(("first", "second")))
def test_a_reload_raises_promotes_and_reopens_nothing(history: History, digest: str) -> None:
    engine = fresh()
    play(engine, history)
    emitted = engine.step(engine.now_ns, CatalogChanged(digest=digest)).events
    emitted += engine.step(engine.now_ns, Tick()).events
    assert {event.kind for event in emitted} <= {
        EventKind.TABLES_RELOADED,
        EventKind.LEVEL_CHANGED,
        EventKind.VERDICT_CHANGED,
        EventKind.CLEARED,
        EventKind.RELEASED,
    }


@moderately
@given(histories(anything), st.sampled_from(("first", "second")))
def test_a_preview_says_what_the_reload_then_does(history: History, digest: str) -> None:
    engine = fresh()
    play(engine, history)
    before = engine.view()
    preview = engine.preview(CATALOGS[digest])
    assert engine.view() == before
    engine.step(engine.now_ns, CatalogChanged(digest=digest))
    assert preview == compare(before, engine.view())


def assert_same_future(one: Engine, other: Engine, future: History) -> None:
    assert one.view() == other.view()
    assert one.next_deadline() == other.next_deadline()
    begins_ns = one.now_ns
    for at_ns, given_next in [(begins_ns + at_ns, later) for at_ns, later in future] + list(FUTURE):
        assert one.step(at_ns, given_next) == other.step(at_ns, given_next)
