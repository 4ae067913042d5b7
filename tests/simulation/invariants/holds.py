"""What operators ordered is what holds: a twin that keeps a list of orders."""

from nodeagent.core.model import EventKind, HoldKind, Operator
from tests.simulation.history import Broken, Step
from tests.simulation.twins.observed import device_id
from tests.simulation.watch import Invariant

Order = tuple[str, str, str]
"""Device, owner, reason."""


class HoldsAreTheirOwners(Invariant):
    """One for each device, owner and reason, until its owner or force releases it, the latest end that was
    ordered for it has come, or the part is gone.
    """

    name = "a hold ends by its owner, by force or at its latest end only"

    def __init__(self) -> None:
        self._until_ns: dict[Order, int | None] = {}

    def on_step(self, step: Step) -> None:
        given = step.given
        if isinstance(given, Operator) and (device := device_id(step.before, given.device)):
            if given.what == "isolate":
                self._isolate((device, given.owner, given.reason), given.until_ns)
            elif given.what == "release":
                self._release(device, given)
        for event in step.events:
            if was := event.evidence.get("was"):
                replaced = event.kind is EventKind.DEVICE_REPLACED
                self._moves(was, "" if replaced else event.device_id)
        self._until_ns = {
            order: until_ns
            for order, until_ns in self._until_ns.items()
            if until_ns is None or until_ns > step.now_ns
        }
        if step.after is step.before:
            return
        held = {
            (hold.device_id, hold.owner, hold.reason): hold.until_ns
            for hold in step.after.holds
            if hold.kind is HoldKind.ISOLATION
        }
        if held != self._until_ns:
            raise Broken(self.name, f"held {held}, ordered {self._until_ns}")

    def _isolate(self, order: Order, until_ns: int | None) -> None:
        before_ns = self._until_ns.get(order, until_ns)
        ends_never = before_ns is None or until_ns is None
        self._until_ns[order] = None if ends_never else max(before_ns or 0, until_ns or 0)

    def _release(self, device: str, given: Operator) -> None:
        for order in list(self._until_ns):
            if order[0] == device and (given.force or order[1] == given.owner):
                del self._until_ns[order]

    def _moves(self, was: str, to: str) -> None:
        for device, owner, reason in list(self._until_ns):
            if device == was:
                until_ns = self._until_ns.pop((device, owner, reason))
                if to:
                    self._until_ns[to, owner, reason] = until_ns
