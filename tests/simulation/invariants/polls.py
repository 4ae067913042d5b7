"""Active sets heal lost callbacks both ways, and prove nothing beyond what they can."""

from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import ALL_DEVICES, ActiveSet, Condition, EventKind
from tests.simulation.history import Broken, Step
from tests.simulation.invariants.once import ONCE_HOLD_NS
from tests.simulation.twins.observed import device_id
from tests.simulation.twins.presence import Heard, PresenceTwin, fault_of
from tests.simulation.twins.rows import duration_rule, is_known, is_related, row_of
from tests.simulation.watch import Invariant


class PollsHeal(Invariant):
    """What is shown is open; what a complete set leaves out, and was not heard of since it began, is over."""

    name = "an active set heals both ways, and closes only what it can know of"

    def __init__(self) -> None:
        self._presence = PresenceTwin()

    def on_step(self, step: Step) -> None:
        given = step.given
        if isinstance(given, ActiveSet) and given.device != ALL_DEVICES:
            device = device_id(step.after, given.device)
            shown = {canonical(active.code) for active in given.codes}
            self._check_closed(step, given, shown)
            if device:
                self._check_healed(step, given, device, shown)
        self._presence.step(step)

    def _check_closed(self, step: Step, given: ActiveSet, shown: set[str]) -> None:
        for event in step.events:
            if event.kind is not EventKind.CLEARED or is_related(step.catalog, event.code):
                continue
            heard = self._presence.heard.get(fault_of(event))
            if heard is None or event.at_ns < step.now_ns or event.why == "not seen again":
                continue
            by_reboot = heard.boot != self._presence.boot
            absent = heard.shown and heard.last_ns < given.begun_ns
            if not given.complete or canonical(event.code) in shown or not (absent or by_reboot):
                raise Broken(self.name, f"{given} closed {event.condition_id}, heard {heard}")

    def _check_healed(self, step: Step, given: ActiveSet, device: str, shown: set[str]) -> None:
        there = {
            canonical(one.code): one
            for one in step.after.conditions
            if one.device_id == device and not one.origin.injected
        }
        for code in shown:
            row = row_of(step.catalog, code)
            overtaken = self._presence.over_ns.get((device, code), 0) >= given.begun_ns
            if overtaken or row is None or row.notice or is_related(step.catalog, code):
                continue
            if code not in there:
                raise Broken(self.name, f"{code} is active on {given.device} and not open")
        for code, condition in there.items():
            if given.complete and code not in shown and self._is_over(step, condition, given, code):
                raise Broken(self.name, f"{condition.id} is not active and not closed")

    def _is_over(self, step: Step, condition: Condition, given: ActiveSet, code: str) -> bool:
        heard = self._presence.heard.get((condition.device_id, code))
        row = row_of(step.catalog, code)
        if heard is None or row is None or condition.origin.rule or not is_known(step.catalog, code):
            return False
        if heard.boot != self._presence.boot and row.clear_on.reboot and heard.source == given.source:
            return True
        if duration_rule(step.catalog, code) and _is_held_by_once(heard, step.now_ns):
            return False
        ends = row.clear_on.recover and heard.shown and heard.source == given.source
        return ends and heard.last_ns < given.begun_ns and condition.presence.recovered_ns is None


def _is_held_by_once(heard: Heard, now_ns: int) -> bool:
    """Beside a presence, whichever ends later."""
    return heard.once_ns is not None and now_ns <= heard.once_ns + ONCE_HOLD_NS
