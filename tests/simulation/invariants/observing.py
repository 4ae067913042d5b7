"""Not observed, not judged: what time does while a source is away, and what unobserved devices show."""

from nodeagent.core.model import NODE, Event, EventKind, Started, Tick, Verdict
from tests.simulation.history import Broken, Step
from tests.simulation.twins.missed import Missed
from tests.simulation.twins.observed import ALWAYS_HEARD, STALE_AFTER_NS, Observed
from tests.simulation.twins.rows import row_of
from tests.simulation.watch import Invariant

_BY_TIME = {
    EventKind.RAISED,
    EventKind.CLEARED,
    EventKind.LEVEL_CHANGED,
    EventKind.PROMOTED,
    EventKind.RELEASED,
    EventKind.SUPPRESSED,
}


class UnobservedIsNotJudged(Invariant):
    """While a source is lost, or not read since a start, no deadline of its faults has any effect."""

    name = "what is not observed is not judged"

    def __init__(self) -> None:
        self._observed = Observed()

    def on_step(self, step: Step) -> None:
        if isinstance(step.given, Tick):
            for event in step.events:
                self._check(event, step.now_ns)
        elif isinstance(step.given, Started):
            for event in step.events:
                self._check_start(step, event)
        self._observed.step(step)

    def _check_start(self, step: Step, event: Event) -> None:
        """A start reads nothing: a reboot ends what nobody polls, and the jobs."""
        row = row_of(step.catalog, event.code)
        by_job = row is not None and row.clear_on.job_end
        if event.injected or event.kind is not EventKind.CLEARED or by_job:
            return
        if event.source not in ALWAYS_HEARD:
            raise Broken(self.name, f"a start cleared {event.condition_id}: {event.why}")

    def _check(self, event: Event, now_ns: int) -> None:
        concerns_fault = bool(event.condition_id) and not event.injected
        if event.kind not in _BY_TIME or not concerns_fault:
            return
        if self._observed.awaits(event.source, event.device_id, now_ns):
            raise Broken(
                self.name, f"{event.kind} {event.condition_id} though {event.source} is away: {event.why}"
            )


class UnknownOnlyUnobserved(Invariant):
    """UNKNOWN is shown of the unobserved only, and of them all where nothing stricter is open."""

    name = "UNKNOWN only if unobserved"

    def __init__(self) -> None:
        self._observed = Observed()

    def on_step(self, step: Step) -> None:
        self._observed.step(step)
        if step.after is step.before:
            return
        for device in step.after.devices:
            if device.verdict is Verdict.UNKNOWN and device.observed:
                raise Broken(self.name, f"{device.name} is UNKNOWN and observed")
            if not device.vendor:
                continue
            if device.observed and not self._observed.observes(device.vendor, device.id):
                raise Broken(
                    self.name, f"{device.name} shows as observed, but {device.vendor} does not read it"
                )
            just_started = self._observed.started_within(step.now_ns, STALE_AFTER_NS)
            stands = just_started and not self._observed.rebooted
            if device.verdict is Verdict.ALLOW and not device.observed and not stands:
                raise Broken(self.name, f"{device.name} is ALLOW, though {device.reasons}")


class NodeIsObserved(Invariant):
    """The node is UNKNOWN while a source is missed without which nobody can say how it is, and never else."""

    name = "the node is observed by its sources"

    def __init__(self) -> None:
        self._missed = Missed()

    def on_step(self, step: Step) -> None:
        self._missed.step(step.given, step.now_ns)
        node = next(device for device in step.after.devices if device.name == NODE)
        missed = self._missed.sources(step.now_ns)
        named = {reason.id for reason in node.reasons if reason.kind == "source"}
        if (named, node.observed) != (missed, not missed):
            raise Broken(self.name, f"the node misses {sorted(named)}, and not {sorted(missed)}")
        if node.verdict is (Verdict.ALLOW if missed else Verdict.UNKNOWN):
            raise Broken(self.name, f"the node is {node.verdict}, and misses {sorted(missed)}")
