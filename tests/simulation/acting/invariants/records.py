"""The records of actions: durable first, in order, each with one end, and reported as it truly went."""

from collections import Counter

from nodeagent.core.engine import Engine
from nodeagent.core.machines.resets import OUTCOME
from nodeagent.core.model import ActionResult, CatalogChanged, Event, EventKind
from tests.simulation.acting.invariants.starts import is_in_progress
from tests.simulation.history import NOT_DURABLE, Attempt, Broken, HardwareReset, Step, Turn
from tests.simulation.watch import Invariant
from tests.simulation.world import World

_ACTIONS = (EventKind.ACTION_PROPOSED, EventKind.ACTION_STARTED, EventKind.ACTION_FINISHED)
AGAIN = "; once more after the cool-down"


class DurableFirst(Invariant):
    """Each attempt has its own record, in a mode that acts, and resets the hardware once at most."""

    name = "no hardware is reset without a durable start of that very attempt"

    def __init__(self) -> None:
        self._started: set[Attempt] = set()
        self._done: set[Attempt] = set()

    def on_turn(self, turn: Turn) -> None:
        for event in (stored.event for stored in turn.stored):
            if event.kind is EventKind.ACTION_STARTED and event.evidence["mode"] in ("on", "ask"):
                self._started.add(attempt_of(event))

    def on_reset(self, reset: HardwareReset) -> None:
        if reset.attempt not in self._started:
            raise Broken(self.name, f"{reset.attempt} was never started")
        if reset.attempt in self._done:
            raise Broken(self.name, f"{reset.attempt} ran twice")
        self._done.add(reset.attempt)


class StepsInOrder(Invariant):
    """Proposed, then started and finished for each attempt; one end, after which nothing more is emitted."""

    name = "every action that is proposed has one end, and its steps their order"

    def __init__(self) -> None:
        self._last: dict[str, EventKind] = {}
        self._ended: set[str] = set()
        self._starts: Counter[str] = Counter()

    def on_step(self, step: Step) -> None:
        for event in step.events:
            if event.kind in _ACTIONS:
                self._check(event)
                self._last[event.condition_id] = event.kind
        if step.after is step.before:
            return
        in_progress = {reset.id for reset in step.after.resets if is_in_progress(reset)}
        unended = self._last.keys() - self._ended
        if in_progress != unended:
            raise Broken(self.name, f"{in_progress} are in progress; of {unended} no end was reported")

    def on_end(self, engine: Engine, world: World) -> None:
        if open_ended := self._last.keys() - self._ended:
            raise Broken(self.name, f"no end of {open_ended}")

    def _check(self, event: Event) -> None:
        action_id, last = event.condition_id, self._last.get(event.condition_id)
        if action_id in self._ended:
            raise Broken(self.name, f"{event.kind} of {action_id} after its end")
        if last is None and event.kind is not EventKind.ACTION_PROPOSED:
            raise Broken(self.name, f"{event.kind} of {action_id}, which nobody proposed")
        if event.kind is EventKind.ACTION_STARTED:
            self._starts[action_id] += 1
            again = self._starts[action_id] > 2 or last is EventKind.ACTION_STARTED
            if again or int(event.evidence["attempt"]) != self._starts[action_id]:
                raise Broken(self.name, f"{action_id} was started {self._starts[action_id]} times")
        elif event.kind is EventKind.ACTION_PROPOSED and last is EventKind.ACTION_STARTED:
            raise Broken(self.name, f"{action_id} was proposed while it runs")
        elif event.kind is EventKind.ACTION_FINISHED and not event.why.endswith(AGAIN):
            self._ended.add(action_id)


class EndsByItsResult(Invariant):
    """The word that ends an attempt is its own process's, or that nothing came, or that it did not help.

    A second one that never began, or was refused, ends as the first did, by having failed, but where its
    fault has gone.
    """

    name = "an attempt ends by its own result"

    def __init__(self) -> None:
        self._began: set[Attempt] = set()
        self._ended: dict[Attempt, str] = {}
        self._degraded: set[str] = set()

    def on_ended(self, attempt: Attempt, result: ActionResult) -> None:
        self._ended[attempt] = result.state.value

    def on_step(self, step: Step) -> None:
        if isinstance(step.given, ActionResult) and step.given.reason == NOT_DURABLE:
            self._degraded.add(step.given.action_id)
        for event in step.events:
            if event.kind is EventKind.ACTION_STARTED:
                self._began.add(attempt_of(event))
            elif event.kind is EventKind.ACTION_FINISHED and "started_after_s" in event.evidence:
                self._check(event)

    def _check(self, event: Event) -> None:
        if event.evidence["mode"] == "dry-run":
            return
        attempt = attempt_of(event)
        word, truly = event.evidence[OUTCOME], self._ended.get(attempt)
        was_refused = truly == "refused" or event.condition_id in self._degraded
        if attempt not in self._began:
            right = word == ("refused" if "the fault is gone" in event.why else "failed")
        elif word == "done" or "no poll showed" in event.why:
            right = truly == "done"
        elif word == "refused":
            right = was_refused or "tool" not in event.why
        elif "no result came" in event.why:
            right = True
        else:
            right = truly == word or (word == "failed" and attempt.number > 1 and was_refused)
        if not right:
            raise Broken(self.name, f"{attempt} is reported as {event.why}; it was {truly}")


class ReloadProposesNothing(Invariant):
    name = "a reload proposes no reset and starts none"

    def on_step(self, step: Step) -> None:
        if not isinstance(step.given, CatalogChanged):
            return
        known = {reset.id for reset in step.before.resets}
        for event in step.events:
            is_new = event.kind is EventKind.ACTION_PROPOSED and event.condition_id not in known
            if is_new or event.kind is EventKind.ACTION_STARTED:
                raise Broken(self.name, f"{event.kind} {event.condition_id}: {event.why}")


def attempt_of(event: Event) -> Attempt:
    return Attempt(event.condition_id, int(event.evidence["attempt"]))
