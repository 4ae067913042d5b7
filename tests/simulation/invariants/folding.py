"""A subscriber who knows nothing but the events has the whole state at every number."""

from nodeagent.core.model import Event, EventKind, Handling, Verdict, View
from tests.simulation.history import Broken, Step, Turn
from tests.simulation.watch import Invariant

_FREE = (Verdict.ALLOW, Handling.NONE)


class FoldGivesTheView(Invariant):
    """Also: a raise has one clear, a promotion one release, no id comes twice."""

    name = "folding the events gives the view"

    def __init__(self) -> None:
        self._stances: dict[str, tuple[Verdict, Handling]] = {}
        self._conditions: set[str] = set()
        self._promotions: set[str] = set()
        self._holds: set[str] = set()
        self._ever: set[str] = set()

    def on_step(self, step: Step) -> None:
        for event in step.events:
            self._fold(event)
        if step.after is not step.before or step.events:
            self._compare(step.after)

    def on_turn(self, turn: Turn) -> None:
        emitted = [event for step in turn.steps for event in step.events]
        stored = [one.event for one in turn.stored]
        if stored[len(stored) - len(emitted) :] != emitted:
            raise Broken(self.name, "what was stored is not what was stepped")

    def _fold(self, event: Event) -> None:
        before = self._stances.get(event.device_id, _FREE)
        self._stances.pop(event.evidence.get("was", ""), None)
        stance = (event.verdict, event.handling)
        if event.kind is EventKind.VERDICT_CHANGED and stance == before:
            raise Broken(self.name, f"{event.device}: a change to what it was, {stance}")
        self._stances[event.device_id] = stance
        match event.kind:
            case EventKind.RAISED:
                self._open(self._conditions, event)
            case EventKind.PROMOTED:
                self._open(self._promotions, event)
            case EventKind.CLEARED:
                self._close(self._conditions, event)
            case EventKind.RELEASED if event.rule:
                self._close(self._promotions, event)
            case EventKind.ISOLATED | EventKind.QUIESCED:
                self._holds.add(event.condition_id)
            case EventKind.RELEASED | EventKind.RESUMED:
                self._close(self._holds, event)

    def _open(self, among: set[str], event: Event) -> None:
        if event.condition_id in self._ever:
            raise Broken(self.name, f"{event.condition_id} is {event.kind} a second time")
        self._ever.add(event.condition_id)
        among.add(event.condition_id)

    def _close(self, among: set[str], event: Event) -> None:
        if event.condition_id not in among:
            raise Broken(self.name, f"{event.condition_id} is {event.kind} but was not open")
        among.remove(event.condition_id)

    def _compare(self, view: View) -> None:
        shown = {
            device.id: (device.verdict, device.handling)
            for device in view.devices
            if device.id in self._stances or (device.verdict, device.handling) != _FREE
        }
        _same(self.name, "verdicts", self._stances, shown)
        _same(self.name, "conditions", self._conditions, {one.id for one in view.conditions})
        _same(self.name, "holds", self._holds, {one.id for one in view.holds})
        effective = {one.id for one in view.promotions if one.effective}
        _same(self.name, "promotions", self._promotions, effective)


def _same(name: str, what: str, folded: object, viewed: object) -> None:
    if folded != viewed:
        raise Broken(name, f"{what}: folded {folded}, viewed {viewed}")
