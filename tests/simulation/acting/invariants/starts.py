"""What must be so at the moment at which a reset starts, by a twin that knows the inputs only."""

from collections.abc import Iterator

from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import (
    Condition,
    DeviceView,
    Event,
    EventKind,
    HoldKind,
    Level,
    Reset,
    ResetMode,
    ResetStage,
)
from tests.simulation.acting.known import Known
from tests.simulation.history import Broken, Step
from tests.simulation.twins.rows import row_of
from tests.simulation.watch import Invariant

_WANTING = ("RestartRequest", "RestartBusiness", "FreeRestartNPU", "RestartNPU")
_SEPARATED = (Level.SEPARATE_NPU, Level.MANUALLY_SEPARATE_NPU)


class _AtStart(Invariant):
    """Looks at each start once the twin knows the step."""

    def __init__(self, known: Known) -> None:
        self.known = known

    def on_step(self, step: Step) -> None:
        for event, reset in starts(step):
            if found := self.wrong(step, event, reset):
                raise Broken(self.name, f"{reset.id}: {found}")

    def wrong(self, step: Step, event: Event, reset: Reset) -> str:
        raise NotImplementedError


class HasAReason(_AtStart):
    """A person, or an open fault that wants a reset and was seen in this life: real, and the hardware's."""

    name = "no reset without a fault that is seen and asks for it"

    def wrong(self, step: Step, event: Event, reset: Reset) -> str:
        if reset.who:
            return ""
        asking = [one for one in step.after.conditions if one.id in reset.conditions]
        found = {one.id: self._not_a_reason(step, one) for one in asking}
        return "" if any(not why for why in found.values()) else f"it has no reason: {found}"

    def _not_a_reason(self, step: Step, condition: Condition) -> str:
        row = row_of(step.catalog, condition.code)
        if condition.origin.injected:
            return "injected"
        if row is None or row.user_induced:
            return "the application's"
        if condition.level not in _WANTING or not row.clear_on.reset:
            return f"{condition.level} wants none"
        return "" if self.known.is_live(condition.device_id, condition.code) else "not seen in this life"


class WasConfirmed(_AtStart):
    name = "no reset that no poll has confirmed since it was proposed"

    def wrong(self, step: Step, event: Event, reset: Reset) -> str:
        polled = self.known.polled.get(reset.asker_id)
        since_ns = max(reset.proposed_ns, self.known.started_ns)
        if reset.attempt > 1:
            since_ns = max(since_ns, self._ended_ns(step, reset))
        if polled is not None and polled.begun_ns >= since_ns:
            return ""
        shown = (self.known.shown_ns.get((reset.asker_id, canonical(code)), 0) for code in reset.codes)
        return "" if any(begun_ns >= since_ns for begun_ns in shown) else f"the last poll is {polled}"

    def _ended_ns(self, step: Step, reset: Reset) -> int:
        """Of the attempt before."""
        return next((one.ended_ns or 0 for one in step.before.resets if one.id == reset.id), 0)


class NobodyUsesIt(_AtStart):
    name = "no reset of a chip that is used, or of which that is not known"

    def wrong(self, step: Step, event: Event, reset: Reset) -> str:
        return "; ".join(filter(None, (self.known.users(step, one) for one in reset.members)))


class NothingStandsInTheWay(_AtStart):
    """No isolation, no separation, no quiesce, a durable store."""

    name = "no reset of what is isolated, separated or quiesced"

    def wrong(self, step: Step, event: Event, reset: Reset) -> str:
        if self.known.is_quiesced(event.at_ns):
            return "the node is quiesced"
        if self.known.is_degraded:
            return "the store is not durable"
        for hold in step.after.holds:
            if hold.kind is HoldKind.ISOLATION and hold.device_id in reset.members:
                return f"{hold.device_id} is isolated"
        separated = [
            one.id
            for one in step.after.conditions
            if one.level in _SEPARATED and not one.origin.injected and one.device_id in reset.members
            if one.presence.opened_ns <= event.at_ns
        ]
        separated += [
            one.id
            for one in step.after.promotions
            if one.effective and one.level in _SEPARATED and one.device_id in reset.members
        ]
        return f"separated by {separated}" if separated else ""


class ModeAllowsIt(_AtStart):
    """As the configuration is at that moment, not as it was when the reset was proposed."""

    name = "a reset goes as far as the mode allows"

    def wrong(self, step: Step, event: Event, reset: Reset) -> str:
        mode = step.catalog.settings.reset.of_vendor(_device(step, reset.asker_id).vendor)
        if "once" in event.evidence:
            return "" if reset.id in self.known.ordered_once else "nobody ordered it"
        if event.evidence["mode"] != mode.value:
            return f"started in mode {event.evidence['mode']}, the mode is {mode}"
        if mode is ResetMode.ASK and not reset.who and reset.id not in self.known.approved:
            return "it was not approved"
        return "" if mode is not ResetMode.OFF else "resets are off"


class WholeGroup(_AtStart):
    """What the hardware will reset is what is held, checked and counted."""

    name = "a reset is of a whole group"

    def wrong(self, step: Step, event: Event, reset: Reset) -> str:
        asker = _device(step, reset.asker_id)
        group = asker.attributes.get("group")
        there = {
            one.id
            for one in step.after.devices
            if one.id == asker.id
            or (
                (group and (one.vendor, one.attributes.get("group")) == (asker.vendor, group))
                and not any(reason.kind == "device" for reason in one.reasons)
            )
        }
        left_out = there - set(reset.members)
        return f"{sorted(left_out)} would be reset too" if left_out else ""


def starts(step: Step) -> Iterator[tuple[Event, Reset]]:
    """Of every mode; those that are over within the step too."""
    resets = {reset.id: reset for reset in (*step.before.resets, *step.after.resets)}
    for event in step.events:
        if event.kind is EventKind.ACTION_STARTED and event.condition_id in resets:
            yield event, resets[event.condition_id]


def is_in_progress(reset: Reset) -> bool:
    return reset.stage is not ResetStage.ENDED


def _device(step: Step, device_id: str) -> DeviceView:
    (found,) = [one for one in step.after.devices if one.id == device_id]
    return found
