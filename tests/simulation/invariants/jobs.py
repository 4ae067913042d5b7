"""A fault of the application: from the third in a day the job moves; a twin that counts them all anew."""

from nodeagent.core.catalog.codes import canonical
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Assertion, EventKind, Signal
from tests.simulation.history import Broken, Step
from tests.simulation.twins.observed import device_id
from tests.simulation.twins.presence import Fault, fault_of
from tests.simulation.twins.rows import row_of
from tests.simulation.watch import Invariant

DAY_NS = 24 * 3600 * SECOND_NS


class ThirdMovesTheJob(Invariant):
    """Judged where a driver says each once: of the kernel's many lines a burst would be one."""

    name = "from the third fault of the application in a day the job moves"

    def __init__(self) -> None:
        self._came_ns: dict[Fault, list[int]] = {}

    def on_step(self, step: Step) -> None:
        given = step.given
        for event in step.events:
            if was := event.evidence.get("was"):
                self._came_ns = {key: one for key, one in self._came_ns.items() if key[0] != was}
            if event.kind is EventKind.RAISED and not event.injected and not isinstance(given, Signal):
                self._came_ns.setdefault(fault_of(event), []).append(event.at_ns)
        if not isinstance(given, Signal) or given.injected or given.assertion is Assertion.RECOVER:
            return
        fault = device_id(step.after, given.device), canonical(given.code)
        row = row_of(step.catalog, given.code)
        if given.source != "ascend" or row is None or not row.user_induced:
            return
        came_ns = self._came_ns.setdefault(fault, [])
        came_ns += [step.now_ns] * max(1, given.count)
        third = sum(step.now_ns - at_ns <= DAY_NS for at_ns in came_ns) >= 3
        for condition in step.after.conditions:
            same = (condition.device_id, canonical(condition.code)) == fault and not condition.origin.injected
            if same and condition.grade.user_induced and condition.grade.rescheduling is not third:
                raise Broken(
                    self.name,
                    f"{condition.id}: {len(came_ns)} came, rescheduling {condition.grade.rescheduling}",
                )
