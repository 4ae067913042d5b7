"""The engine: one input at a time in, ordered outcomes out. It wires the rules and decides nothing itself.

    engine.step(now_ns, input) -> Outcome    total: any input at any time, first fires what is due
    engine.next_deadline()     -> int | None when it wants to be called again
    engine.view()                            its state as a value, immutable

Time is the rule clock's, an argument that never steps back. Equal inputs at equal times give equal
outcomes: that is what replay and crash recovery rest on. A stored input is replayed with
``replay``, which does the same and emits nothing; ``resume`` ends a replay.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from nodeagent.core import reload
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.faults import ending, reported, signals
from nodeagent.core.follow import FOLLOWERS
from nodeagent.core.judge.events import settle, show_as_emitted
from nodeagent.core.machines import (
    devices,
    holds,
    job_review,
    orders,
    reset_blockers,
    reset_policy,
    reset_proposals,
    resets,
    sources,
    supervisor_reports,
    users,
)
from nodeagent.core.machines.reset_refusal import DryRun, dry_run
from nodeagent.core.model import (
    NODE,
    ActionResult,
    ActiveSet,
    BaselineSeen,
    Carried,
    CatalogChanged,
    Claims,
    Condition,
    Device,
    DeviceGone,
    DeviceSeen,
    Hold,
    Input,
    Job,
    JobBegun,
    JobEnded,
    Operator,
    Outcome,
    ProcessesListed,
    Promotion,
    PublicFaults,
    Reset,
    ResetsRecorded,
    RunReported,
    Signal,
    Source,
    SourceAbsent,
    SourceBack,
    SourceLost,
    Started,
    TablesRejected,
    View,
)
from nodeagent.core.preview import Preview, compare
from nodeagent.core.reconcile import PublishedState, reconcile
from nodeagent.core.rules import frequency
from nodeagent.core.rules.kind import Raise
from nodeagent.core.rules.kinds import RAISING
from nodeagent.core.state import registry
from nodeagent.core.state.cells import TAGS
from nodeagent.core.state.state import EngineState
from nodeagent.core.view import view_of

_MAX_FIRINGS = 1_000_000

Handler = Callable[[EngineState, Any], bool]


def _signalled(state: EngineState, given: Signal) -> bool:
    changed = given.backdated and sources.history_begun(state, given.source)
    return signals.signalled(state, given) or changed


def _polled(state: EngineState, given: ActiveSet) -> bool:
    changed = sources.polled(state, given)
    return reset_proposals.polled(state, given) or changed


def _ordered(state: EngineState, given: Operator) -> bool:
    changed, state.answer = orders.ordered(state, given)
    return changed


def _reported(state: EngineState, given: PublicFaults) -> bool:
    changed, state.answer = reported.reported(state, given)
    return changed


def _carried(state: EngineState, given: Carried) -> bool:
    """Put the cell back. The node that every engine is born with gives way to the one that is carried."""
    if isinstance(given.cell, Device) and given.cell.name == NODE:
        state.drop(state.device(state.node_id))
    state.put(resets.as_of_now(given.cell) if isinstance(given.cell, Reset) else given.cell)
    state.unreviewed.clear()
    return False


def _with_rules(handlers: dict[type, Handler]) -> dict[type, Handler]:
    """With those of the kinds of rules, which come after the others that take the same type of input."""
    for kind in RAISING:
        for of, handler in kind.handlers.items():
            handlers[of] = _both(handlers.get(of, _nothing), handler)
    return handlers


def _nothing(_: EngineState, __: Any) -> bool:
    return False


def _both(first: Handler, of_rule: Callable[[EngineState, Any, Raise], bool]) -> Handler:
    def both(state: EngineState, given: Any) -> bool:
        changed = first(state, given)
        return of_rule(state, given, signals.signalled) or changed

    return both


def _due_of_rule(due: Callable[[EngineState, Any, Raise], None]) -> Callable[[EngineState, Any], None]:
    return lambda state, cell: due(state, cell, signals.signalled)


_HANDLERS: dict[type, Handler] = _with_rules(
    {
        Signal: _signalled,
        ActiveSet: _polled,
        DeviceSeen: devices.seen,
        DeviceGone: devices.gone,
        BaselineSeen: devices.baseline_seen,
        SourceLost: sources.lost,
        SourceBack: sources.back,
        SourceAbsent: sources.absent,
        CatalogChanged: reload.changed,
        TablesRejected: reload.rejected,
        Started: sources.started,
        Operator: _ordered,
        PublicFaults: _reported,
        Claims: users.claimed,
        JobBegun: supervisor_reports.begun,
        RunReported: supervisor_reports.run_reported,
        JobEnded: supervisor_reports.ended,
        ActionResult: resets.resulted,
        ResetsRecorded: reset_blockers.recorded,
        ProcessesListed: users.listed,
        Carried: _carried,
    }
)
"""An input without a handler lets only time pass."""

_DUE: dict[str, tuple[type, Callable[[EngineState, Any], None]]] = {
    "condition": (Condition, ending.due),
    "promotion": (Promotion, frequency.due),
    "source": (Source, sources.due),
    "hold": (Hold, holds.due),
    "reset": (Reset, reset_proposals.due),
    "job": (Job, job_review.due),
    **{TAGS[kind.cell]: (kind.cell, _due_of_rule(kind.due)) for kind in RAISING if kind.due is not None},
}


def _followed(state: EngineState, changed: bool) -> bool:
    """What every change is followed by: the reviews of rules, limits that were reached, resets and jobs, and
    the verdicts.
    """
    for kind in RAISING:
        if changed and kind.review is not None:
            kind.review(state, signals.signalled)
    if state.overflow:
        changed = signals.overflowed(state) or changed
    while state.unreviewed:
        changed = reset_policy.review(state) or changed
        changed = job_review.review(state) or changed
    if state.dirty:
        settle(state)
    return changed


class Engine:
    """``catalogs`` maps digests to catalogs; the shell adds one before it steps a CatalogChanged to it."""

    def __init__(self, catalogs: Mapping[str, Catalog]) -> None:
        self._state = EngineState(catalogs, FOLLOWERS, (kind.cell for kind in RAISING))
        registry.resolve(self._state, NODE, None)

    @property
    def now_ns(self) -> int:
        return self._state.now_ns

    @property
    def digest(self) -> str:
        """The digest of the catalog in force, "" before the first CatalogChanged."""
        return self._state.era.digest

    def step(self, now_ns: int, given: Input) -> Outcome:
        """Fire every deadline at or before ``now_ns``, in order, then take the input.

        ``Started`` comes first: what fell due while nothing was observed waits for a read.
        """
        state = self._state
        state.events, state.actions, state.answer = [], [], None
        if isinstance(given, Started):
            given = replace(given, resumed_ns=self._resumed(now_ns, given))
        changed = self._advance(now_ns, given)
        return Outcome(
            records=(given,) if changed else (),
            events=tuple(state.events),
            actions=tuple(action for action in state.actions if resets.is_running(state, action)),
            answer=state.answer,
        )

    def _advance(self, now_ns: int, given: Input) -> bool:
        state = self._state
        state.now_ns = max(state.now_ns, now_ns)
        if not isinstance(given, Started):
            self._fire()
        changed = self._take(given)
        self._fire()
        return changed

    def _resumed(self, now_ns: int, started: Started) -> int:
        """How far the engine had come when it was stopped: in a replay, by its stored inputs."""
        state = self._state
        if started.resumed_ns is not None:
            state.now_ns = max(state.now_ns, min(now_ns, started.resumed_ns))
            self._fire()
        return state.now_ns

    def replay(self, now_ns: int, given: Input) -> None:
        """As ``step``, emitting nothing: for inputs whose events are published already."""
        self._state.muted = True
        if isinstance(given, Started):
            self._resumed(now_ns, given)
        self._advance(now_ns, given)

    def resume(self, now_ns: int) -> None:
        """End a replay at the time up to which deadlines had fired."""
        state = self._state
        state.muted = True
        state.now_ns = max(state.now_ns, now_ns)
        self._fire()
        show_as_emitted(state)
        state.muted = False

    def reconcile(self, published: PublishedState) -> tuple[Outcome, int]:
        """After ``resume``: emit where the state differs from the published events; also how often."""
        state = self._state
        state.events = []
        differences = reconcile(state, published)
        settle(state)
        return Outcome(events=tuple(state.events)), differences

    def next_deadline(self) -> int | None:
        return self._state.timers.next_ns()

    def carry(self) -> tuple[Carried, ...]:
        """Every live cell, for compaction, in the order in which they can be put back."""
        return tuple(Carried(cell=cell) for cells in self._state.cells.values() for cell in cells.values())

    def preview(self, catalog: Catalog) -> Preview:
        """What this catalog would change of what is open. The engine itself is not changed."""
        catalogs = {**self._state.catalogs, catalog.digest: catalog}
        before, after = Engine(catalogs), Engine(catalogs)
        for engine in (before, after):
            for carried in self.carry():
                engine.replay(self.now_ns, carried)
            engine.resume(self.now_ns)
        after.step(self.now_ns, CatalogChanged(digest=catalog.digest))
        return compare(before.view(), after.view())

    def dry_run_reset(self, device: str, once: bool = False) -> DryRun | None:
        """What a person's order to reset it, ``once`` or not, would do now; None: no such device."""
        found = registry.find(self._state, device)
        return None if found is None else dry_run(self._state, found, once)

    def view(self) -> View:
        return view_of(self._state)

    def _take(self, given: Input) -> bool:
        state = self._state
        handler = _HANDLERS.get(type(given))
        if handler is None:
            return False
        state.moment_ns = state.now_ns
        return _followed(state, handler(state, given))

    def _fire(self) -> None:
        state = self._state
        for _ in range(_MAX_FIRINGS):
            due = state.timers.pop_due(state.now_ns)
            if due is None:
                return
            state.moment_ns, key = due
            of, handler = _DUE[key[0]]
            cell = state.cells[of].get(key)
            if cell is not None:
                handler(state, cell)
                _followed(state, True)
        raise AssertionError("deadlines do not come to rest")
