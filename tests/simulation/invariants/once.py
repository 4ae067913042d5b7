"""A ``once`` is no presence: it closes by itself, its time begun anew by each, neither early nor late."""

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Assertion, Condition, EventKind, Signal, Tick
from tests.simulation.history import Broken, Step
from tests.simulation.twins.observed import Observed, device_id
from tests.simulation.twins.presence import fault_of
from tests.simulation.twins.rows import canonical, duration_rule, is_related, row_of
from tests.simulation.watch import Invariant

ONCE_HOLD_NS = 60 * SECOND_NS


class OnceCloses(Invariant):
    name = "a once closes after its hold, a quiet code after its quiet time"

    def __init__(self) -> None:
        self._observed = Observed()
        self._last_once_ns: dict[tuple[str, str], int] = {}

    def on_step(self, step: Step) -> None:
        self._observed.step(step)
        given = step.given
        if isinstance(given, Signal) and not given.injected and given.trusted:
            fault = device_id(step.after, given.device), canonical(given.code)
            if given.assertion is Assertion.ONCE:
                self._last_once_ns[fault] = step.now_ns
            elif given.assertion is Assertion.OCCUR:
                self._last_once_ns.pop(fault, None)
        for event in step.events:
            if event.kind is EventKind.CLEARED and not event.injected:
                last_ns = self._last_once_ns.pop(fault_of(event), None)
                if isinstance(given, Tick) and last_ns is not None:
                    self._check_early(step, event.code, event.source, event.at_ns - last_ns)
        for condition in step.after.conditions:
            self._check_late(step, condition)

    def _check_early(self, step: Step, code: str, source: str, after_ns: int) -> None:
        held_ns = _held_ns(step, code, source)
        if held_ns is not None and after_ns != held_ns + 1:
            raise Broken(self.name, f"{code} closed {after_ns / 1e9} s after its last once")

    def _check_late(self, step: Step, condition: Condition) -> None:
        last_ns = self._last_once_ns.get((condition.device_id, canonical(condition.code)))
        held_ns = _held_ns(step, condition.code, condition.source)
        if (
            last_ns is None
            or held_ns is None
            or condition.origin.injected
            or condition.presence.present_ns is not None
        ):
            return
        if step.now_ns <= last_ns + held_ns or condition.origin.rule:
            return
        if not self._observed.awaits(condition.source, condition.device_id, step.now_ns):
            raise Broken(
                self.name, f"{condition.id} is open {(step.now_ns - last_ns) / 1e9} s after its last once"
            )


def _held_ns(step: Step, code: str, source: str) -> int | None:
    """None where nothing by itself closes it, or another rule has a say."""
    row = row_of(step.catalog, code)
    if (
        row is None
        or row.clear_on.job_end
        or is_related(step.catalog, code)
        or duration_rule(step.catalog, code)
    ):
        return None
    quiet_ns = row.clear_on.quiet_ns
    if row.clear_on.recover and source in ("ascend", "nvidia"):
        of_source = source == "ascend" or quiet_ns is None
        return min(ONCE_HOLD_NS, quiet_ns or ONCE_HOLD_NS) if of_source else quiet_ns
    return quiet_ns
