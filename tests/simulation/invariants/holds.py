"""What operators ordered is what holds: a twin that keeps a list of orders."""

from nodeagent.core.model import EventKind, Operator
from tests.simulation.history import Broken, Step
from tests.simulation.observed import device_id
from tests.simulation.watch import Invariant


class HoldsAreTheirOwners(Invariant):
    """One for each owner and device, until its owner releases it, its time is over, or the part is gone."""

    name = "a hold ends by its owner or its time only"

    def __init__(self) -> None:
        self._until_ns: dict[tuple[str, str], int | None] = {}

    def on_step(self, step: Step) -> None:
        given = step.given
        if isinstance(given, Operator) and (device := device_id(step.before, given.device)):
            if given.what == "isolate":
                self._until_ns[device, given.who] = given.until_ns
            elif given.what == "release":
                self._until_ns.pop((device, given.who), None)
        for event in step.events:
            if was := event.evidence.get("was"):
                replaced = event.kind is EventKind.DEVICE_REPLACED
                self._moves(was, "" if replaced else event.device_id)
        self._until_ns = {
            key: until_ns
            for key, until_ns in self._until_ns.items()
            if until_ns is None or until_ns > step.now_ns
        }
        if step.after is step.before:
            return
        held = {(hold.device_id, hold.owner): hold.until_ns for hold in step.after.holds}
        if held != self._until_ns:
            raise Broken(self.name, f"held {held}, ordered {self._until_ns}")

    def _moves(self, was: str, to: str) -> None:
        for device, who in list(self._until_ns):
            if device == was:
                until_ns = self._until_ns.pop((device, who))
                if to:
                    self._until_ns[to, who] = until_ns
