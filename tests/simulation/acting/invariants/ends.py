"""What a reset leaves behind: holds, the faults that asked for it, and what is said if it did not help."""

from nodeagent.core.catalog.codes import canonical
from nodeagent.core.machines.resets import OUTCOME
from nodeagent.core.model import (
    ActionResult,
    ActiveSet,
    Belief,
    DeviceView,
    Event,
    EventKind,
    HoldKind,
    Level,
    Reset,
    ResetMode,
    ResetStage,
)
from tests.simulation.acting.invariants.limits import LIMIT, WINDOW_NS
from tests.simulation.acting.invariants.records import AGAIN
from tests.simulation.acting.invariants.starts import is_in_progress
from tests.simulation.acting.known import Known
from tests.simulation.history import Broken, Step
from tests.simulation.twins.rows import row_of
from tests.simulation.watch import Invariant

_SEPARATED = (Level.SEPARATE_NPU, Level.MANUALLY_SEPARATE_NPU)


class HoldsLastAsLong(Invariant):
    """Of every member, from the proposal to the end; none of a dry run. A part put in is no member."""

    name = "a pending reset holds its members exactly as long as it is in progress"

    def __init__(self) -> None:
        self._replaced: set[tuple[str, str]] = set()

    def on_step(self, step: Step) -> None:
        for event in step.events:
            if event.kind is EventKind.RELEASED and event.why == EventKind.DEVICE_REPLACED:
                self._replaced.add((event.device_id, event.condition_id.partition("!")[2]))
        if step.after is step.before:
            return
        there = {device.id for device in step.after.devices}
        held = {
            (hold.device_id, hold.id.partition("!")[2])
            for hold in step.after.holds
            if hold.kind is HoldKind.RESET_PENDING
        }
        pending = {
            (device_id, reset.id)
            for reset in step.after.resets
            if is_in_progress(reset) and reset.mode is not ResetMode.DRY_RUN
            for device_id in reset.members
            if device_id in there and (device_id, reset.id) not in self._replaced
        }
        if held != pending:
            raise Broken(self.name, f"held {held - pending} too much, {pending - held} too little")


class DoneIsSeen(Invariant):
    """A complete poll of each member, begun after the result, without the codes that asked; and what a poll
    shows still is not over by it.
    """

    name = "a reset is done only once polls show that it helped"

    def __init__(self, known: Known) -> None:
        self._known = known
        self._result_ns: dict[str, int] = {}
        self._seen_well: dict[str, set[str]] = {}

    def on_step(self, step: Step) -> None:
        if isinstance(step.given, ActionResult):
            for reset in step.before.resets:
                if reset.id == step.given.action_id and reset.stage is ResetStage.RUNNING:
                    self._result_ns[reset.id] = step.now_ns
                    self._seen_well[reset.id] = set()
        for reset in step.before.resets if isinstance(step.given, ActiveSet) else ():
            if reset.stage is ResetStage.VERIFYING:
                well = {one for one in reset.members if self._is_well(reset, one)}
                self._seen_well.setdefault(reset.id, set()).update(well)
        for event in step.events:
            if event.kind is EventKind.ACTION_FINISHED and event.why.startswith("done: verified"):
                self._check(step, event)

    def _check(self, step: Step, event: Event) -> None:
        (reset,) = [one for one in step.before.resets if one.id == event.condition_id]
        result_ns = self._result_ns.get(reset.id, 0)
        if unseen := set(reset.members) - self._seen_well.get(reset.id, set()):
            raise Broken(self.name, f"{reset.id}: no poll showed {unseen} well")
        for cleared in step.events:
            if cleared.why == f"verified after {reset.id}":
                shown = self._known.polled[cleared.device_id].codes
                if canonical(cleared.code) in shown:
                    raise Broken(self.name, f"{reset.id} ended {cleared.condition_id}, which is shown")
        for condition in step.after.conditions:
            if condition.id in reset.conditions and condition.occurred_ns <= result_ns:
                row = row_of(step.catalog, condition.code)
                if row is not None and row.clear_on.reset:
                    raise Broken(self.name, f"{condition.id} is open after {reset.id}")

    def _is_well(self, reset: Reset, device_id: str) -> bool:
        polled = self._known.polled.get(device_id)
        codes = {canonical(code) for code in reset.codes}
        return (
            polled is not None
            and polled.begun_ns >= self._result_ns.get(reset.id, 0)
            and codes.isdisjoint(polled.codes)
        )


class FailureIsSaid(Invariant):
    """Once more at most; then each member that did not verify has ``reset_failed``."""

    name = "where a reset did not help, that is said and a person is needed"

    def on_step(self, step: Step) -> None:
        for event in step.events:
            if event.kind is not EventKind.ACTION_FINISHED or event.why.endswith(AGAIN):
                continue
            if event.evidence[OUTCOME] in ("failed", "timed_out", "interrupted"):
                self._check(step, event)

    def _check(self, step: Step, event: Event) -> None:
        reset = next(
            (one for one in (*step.after.resets, *step.before.resets) if one.id == event.condition_id), None
        )
        there = {device.id for device in step.after.devices}
        failed = {one.device_id for one in step.after.conditions if one.code == "reset_failed"}
        left = {
            one for one in (reset.members if reset else ()) if one in there and one not in _verified(reset)
        }
        if left - failed:
            raise Broken(self.name, f"{event.condition_id} ended {event.why}; {left - failed} have no word")


class LimitIsReported(Invariant):
    """A fault that asks, on a chip that had all its resets or is reset with one that had, is answered."""

    name = "a fault that asks in vain gets an answer"

    def __init__(self) -> None:
        self._started: dict[str, list[int]] = {}

    def on_step(self, step: Step) -> None:
        for event in step.events:
            if event.kind is EventKind.ACTION_STARTED and event.evidence["mode"] != "dry-run":
                for reset in step.after.resets:
                    if reset.id == event.condition_id:
                        for device_id in reset.members:
                            self._started.setdefault(device_id, []).append(event.at_ns)
            if event.kind is EventKind.RAISED and event.level is Level.RESTART_NPU:
                self._check(step, event)

    def _check(self, step: Step, event: Event) -> None:
        """A fresh, real fault at RestartNPU of a chip that is free of anything else that could answer it.

        A line of the kernel alone asks for nothing.
        """
        settings = step.catalog.settings.reset
        row = row_of(step.catalog, event.code)
        if event.injected or event.user_induced or row is None or not row.clear_on.reset:
            return
        lines_alone = {one.id for one in step.after.conditions if one.backing.belief is not Belief.OWN}
        if event.condition_id in lines_alone:
            return
        (device,) = [one for one in step.after.devices if one.id == event.device_id]
        if settings.of_vendor(device.vendor) not in (ResetMode.ON, ResetMode.ASK) or not device.observed:
            return
        times = sum(step.now_ns - at_ns <= WINDOW_NS for at_ns in self._started.get(device.id, ()))
        answered = {one.device_id for one in step.after.conditions if one.code == "reset_limit_reached"}
        if times >= LIMIT and device.id not in answered and not _is_answered(step, device):
            raise Broken(self.name, f"{device.name} has {event.code} and had {times} resets")


def _verified(reset: Reset | None) -> tuple[str, ...]:
    return reset.verified if reset is not None else ()


def _is_answered(step: Step, device: DeviceView) -> bool:
    """A reset of it is in progress, or something isolates its group anyhow."""
    group = device.attributes.get("group")
    members = [one for one in step.after.devices if one is device or _same(one, group)]
    if any(is_in_progress(reset) and device.id in reset.members for reset in step.after.resets):
        return True
    isolated = {hold.id for hold in step.after.holds}
    return any(
        reason.level in _SEPARATED or reason.id in isolated for one in members for reason in one.reasons
    )


def _same(device: DeviceView, group: str | None) -> bool:
    return bool(group) and device.attributes.get("group") == group
