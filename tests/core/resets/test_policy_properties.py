"""What must hold of resets in every history: limits, one at a time, no start without a reason, any crash."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    Action,
    ActionResult,
    ActionState,
    ActiveSet,
    CatalogChanged,
    Claims,
    Event,
    EventKind,
    Input,
    Level,
    ResetMode,
    ResetStage,
    Started,
    Tick,
)
from tests.core.build import active, back, held, lost, ns, order, seen, signal
from tests.core.resets.ring import BROKEN, ring_catalog

pytestmark = pytest.mark.slow

SHORT = {
    "announce_ns": ns(2),
    "approval_ns": ns(20),
    "validity_ns": ns(60),
    "run_ns": ns(20),
    "verify_ns": ns(10),
    "cool_down_ns": ns(3),
    "limit_window_ns": ns(200),
}
CATALOGS: dict[str, Catalog] = {
    mode.value: replace(ring_catalog(mode, **SHORT), digest=mode.value) for mode in ResetMode
}
CHIPS = ("npu0", "npu1", "npu2")
"""The first two are reset together."""

History = list[tuple[int, Input]]
Acted = list[tuple[int, Action]]
Steps = list[tuple[int, Input]]
moderately = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

_chips = st.sampled_from(CHIPS)
_actions = st.builds(lambda die, number: f"die{die}/reset#{number}", st.integers(0, 2), st.integers(1, 3))
_faults = st.sampled_from((BROKEN, BROKEN, Level.FREE_RESTART_NPU.value, Level.RESTART_BUSINESS.value))


def _listed(chip: str, identity: str) -> Input:
    device = seen(chip, identity, f"0000:0{CHIPS.index(chip)}:00.0")
    group = "ring0" if chip != "npu2" else ""
    return replace(device, attributes={**device.attributes, "group": group})


inputs: st.SearchStrategy[Input] = st.one_of(
    st.builds(lambda code, chip: signal(code, "occur", chip), _faults, _chips),
    st.builds(lambda code, chip: signal(code, "recover", chip), _faults, _chips),
    *3
    * [
        st.builds(
            lambda chip, codes, age_s: (chip, codes, age_s),
            _chips,
            st.lists(_faults, max_size=1),
            st.sampled_from((0, 0, 0, 5)),
        ).map(lambda given: active(*given[1], device=given[0], begun_s=-given[2]))
    ],
    *2
    * [
        st.builds(
            lambda action, state: ActionResult(action_id=action, state=state),
            _actions,
            st.sampled_from((*3 * (ActionState.DONE,), *ActionState)),
        )
    ],
    st.builds(held, _chips, st.sampled_from((None, None, "job-a"))),
    st.builds(
        lambda chip, claimed: Claims(device=chip, job="j", kind="training", claimed=claimed),
        _chips,
        st.sampled_from((False, False, True)),
    ),
    st.builds(order, st.sampled_from(("approve", "approve", "refuse")), _actions),
    st.builds(order, st.sampled_from(("isolate", "release", "release", "reset", "reset")), _chips),
    st.builds(order, st.sampled_from(("quiesce", "resume", "resume")), st.just("node")),
    st.builds(_listed, _chips, st.sampled_from(("die0", "die1", "die2", "die3"))),
    st.builds(lambda device: lost(device=device), st.sampled_from(("", *CHIPS))),
    st.builds(lambda device: back(device=device), st.sampled_from(("", "", *CHIPS))),
    st.builds(
        lambda digest: CatalogChanged(digest=digest), st.sampled_from(("on", "on", "ask", "dry-run", "off"))
    ),
    st.sampled_from((Started(boot_id="boot-1", version="1"), Started(boot_id="boot-2", version="1"))),
)
_pauses = st.sampled_from((0, 1, ns(1), ns(2), ns(2), ns(3), ns(4), ns(11), ns(21), ns(70)))
_stray = st.tuples(_pauses, inputs).map(lambda step: [step])


def round_of(
    chip: str,
    code: str = BROKEN,
    how: ActionState = ActionState.DONE,
    *,
    helps: bool,
    breaks: Steps,
) -> Steps:
    """A fault on a free chip up to the verification of its reset, with something else in the middle."""
    die = CHIPS.index(chip)
    ready: Steps = [(0, held(each, None)) for each in CHIPS] + [(0, order("resume", "node"))]
    fault: Steps = [(0, signal(code, "occur", chip)), (ns(1), active(code, device=chip, begun_s=0))]
    results: Steps = [
        (0, ActionResult(action_id=f"die{die}/reset#{number}", state=how)) for number in range(1, 9)
    ]
    shown = () if helps else (code,)
    polls: Steps = [(0, active(*(shown if each == chip else ()), device=each, begun_s=0)) for each in CHIPS]
    return [*ready, *fault, (ns(5), Tick()), *breaks, *results, (ns(1), Tick()), *polls]


_rounds = st.builds(
    round_of,
    _chips,
    _faults,
    st.sampled_from((*4 * (ActionState.DONE,), *ActionState)),
    helps=st.sampled_from((True, True, False)),
    breaks=st.lists(st.tuples(_pauses, inputs), max_size=2),
)


def timed(parts: list[Steps]) -> History:
    """Pairs (rule time ns, input). Polls carry how old they are, and are stamped here."""
    at_ns, out = ns(1), []
    for pause_ns, one in (step for part in parts for step in part):
        at_ns += pause_ns
        if isinstance(one, ActiveSet):
            one = replace(one, begun_ns=max(0, at_ns + one.begun_ns))
        out.append((at_ns, one))
    return out


def histories(most: int = 12) -> st.SearchStrategy[History]:
    return st.lists(_stray | _rounds, min_size=most // 2, max_size=most).map(timed)


def begin(catalogs: Mapping[str, Catalog] = CATALOGS) -> tuple[Engine, History]:
    engine, log = Engine(catalogs), []
    first: list[Input] = [CatalogChanged(digest="on"), Started(boot_id="boot-1", version="1")]
    first += [_listed(chip, f"die{index}") for index, chip in enumerate(CHIPS)]
    first += [back(), *(held(chip, None) for chip in CHIPS)]
    first.append(Claims(device="npu0", job="j", kind="training", claimed=False))
    for one in first:
        log += [(0, record) for record in engine.step(0, one).records]
    return engine, log


def play(engine: Engine, history: Iterable[tuple[int, Input]]) -> tuple[list[Event], Acted]:
    events: list[Event] = []
    actions: Acted = []
    for at_ns, one in history:
        outcome = engine.step(at_ns, one)
        events += outcome.events
        actions += [(at_ns, action) for action in outcome.actions]
    return events, actions


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


def assert_same_future(one: Engine, other: Engine, future: History) -> None:
    assert one.view() == other.view()
    assert one.next_deadline() == other.next_deadline()
    begins_ns = one.now_ns
    for at_ns, given_next in future:
        stamped = (
            replace(given_next, begun_ns=given_next.begun_ns + begins_ns)
            if isinstance(given_next, ActiveSet)
            else given_next
        )
        assert one.step(begins_ns + at_ns, stamped) == other.step(begins_ns + at_ns, stamped)
