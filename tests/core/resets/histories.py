"""Random histories of three chips, two of which are reset together: faults, polls, orders and resets."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hypothesis import HealthCheck, settings
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
    Input,
    Level,
    ResetMode,
    Started,
    Tick,
)
from tests.core.build import active, back, held, lost, ns, order, seen, signal
from tests.core.resets.ring import BROKEN, ring_catalog

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
moderately = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The simulation plays the same rules for thousands of hours; here a failure shrinks to a few inputs."""

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
