"""Verdict and handling, worked out anew from everything open by a table written down a second time."""

from collections.abc import Iterator

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import Mode, Settings
from nodeagent.core.model import (
    NODE,
    Affects,
    Condition,
    DeviceView,
    Handling,
    HoldKind,
    Kind,
    Level,
    Promotion,
    Recovery,
    Verdict,
    View,
)
from tests.simulation.history import Broken, Step
from tests.simulation.twins.levels import PRECEDENCE
from tests.simulation.twins.modes import settings_on
from tests.simulation.twins.rows import row_of
from tests.simulation.watch import Invariant

Stance = tuple[Verdict, Handling]

_STRICTNESS = ("ALLOW", "UNKNOWN", "NO_NEW_JOBS", "ISOLATE")
_WEIGHT = (
    "NONE",
    "JOB_STRATEGY",
    "RERUN_REQUEST",
    "RESTART_JOB",
    "RESET_WHEN_IDLE",
    "STOP_RESET_RESTART",
    "RESCHEDULE",
)
_OUT = (Verdict.ISOLATE, Handling.RESCHEDULE)
_RESET = (Verdict.ISOLATE, Handling.STOP_RESET_RESTART)
_HELD = {
    HoldKind.ISOLATION: _OUT,
    HoldKind.RESET_PENDING: (Verdict.ISOLATE, Handling.NONE),
    HoldKind.QUIESCE: (Verdict.ALLOW, Handling.NONE),
}
_RESCHEDULING = {
    "NotHandleFault": (Verdict.ALLOW, Handling.NONE),
    "SubHealthFault": (Verdict.ALLOW, Handling.JOB_STRATEGY),
    "PreSeparateNPU": (Verdict.NO_NEW_JOBS, Handling.NONE),
    "PreSeparateFault": (Verdict.NO_NEW_JOBS, Handling.NONE),
}
_GRACEFUL = {
    **_RESCHEDULING,
    "FreeRestartNPU": (Verdict.NO_NEW_JOBS, Handling.RESET_WHEN_IDLE),
    "RestartNPU": _RESET,
    "RestartRequestFault": (Verdict.NO_NEW_JOBS, Handling.RERUN_REQUEST),
}


def stance_of(level: Level, phase: int, settings: Settings) -> Stance:
    """The table of levels and modes; what it does not name takes the chip out of use."""
    graceful = settings.mode is Mode.GRACEFUL
    if level is Level.RESTART_REQUEST:
        if phase == 0 and settings.request_tolerance_ns:
            return Verdict.NO_NEW_JOBS, Handling.RERUN_REQUEST
        return _RESET if graceful else _OUT
    if level is Level.RESTART_BUSINESS and graceful:
        if phase == 0 and settings.self_healing_ns:
            return Verdict.NO_NEW_JOBS, Handling.NONE
        is_restart = phase == (1 if settings.self_healing_ns else 0)
        return (Verdict.NO_NEW_JOBS, Handling.RESTART_JOB) if is_restart else _RESET
    return (_GRACEFUL if graceful else _RESCHEDULING).get(level, _OUT)


class StrictestOfAll(Invariant):
    """Each the strictest over all open conditions, promotions and holds, and the level by precedence."""

    name = "verdict and handling are the strictest of everything open"

    def on_step(self, step: Step) -> None:
        if step.after is step.before:
            return
        for device in step.after.devices:
            stances = list(_stances(step.after, device, step.catalog))
            verdict = max((one[0] for one in stances), key=_STRICTNESS.index, default=Verdict.ALLOW)
            handling = max((one[1] for one in stances), key=_WEIGHT.index, default=Handling.NONE)
            levels = _levels(step.after, device, step.catalog)
            level = max(levels, key=PRECEDENCE.index, default=Level.NOT_HANDLE)
            shown = Verdict.ALLOW if device.verdict is Verdict.UNKNOWN else device.verdict
            if (shown, device.handling, device.level) != (verdict, handling, level):
                found = f"{device.name} is {device.level} {device.verdict} {device.handling}"
                raise Broken(self.name, f"{found}, not {level} {verdict} {handling}: {device.reasons}")


class UserInducedNeverIsolates(Invariant):
    name = "a fault of the application takes no chip out of use"

    def on_step(self, step: Step) -> None:
        if step.after is step.before:
            return
        induced = {one.id for one in step.after.conditions if one.grade.user_induced}
        for device in step.after.devices:
            faults = [reason for reason in device.reasons if reason.kind not in ("source", "device")]
            only_induced = faults and all(reason.id in induced for reason in faults)
            if only_induced and device.verdict not in (Verdict.ALLOW, Verdict.UNKNOWN):
                raise Broken(self.name, f"{device.name} is {device.verdict} for {faults}")


def _stances(view: View, device: DeviceView, catalog: Catalog) -> Iterator[Stance]:
    settings = catalog.settings
    for condition in view.conditions:
        if condition.grade.affect_verdict and _reaches(
            view, condition.device_id, condition.grade.affects, device
        ):
            if condition.grade.user_induced or _restarts_its_job_only(view, condition, catalog):
                yield Verdict.ALLOW, _of_its_job(view, condition)
            elif (
                condition.level is Level.FREE_RESTART_NPU and _recovery(condition, catalog) is Recovery.VENDOR
            ):
                yield Verdict.NO_NEW_JOBS, Handling.RESET_WHEN_IDLE
            else:
                judged_by = settings_on(view, condition.device_id, settings)
                yield stance_of(condition.level, condition.grade.phase, judged_by)
    for promotion in view.promotions:
        affects = _affects(promotion, catalog)
        if promotion.effective and _reaches(view, promotion.device_id, affects, device):
            judged_by = settings_on(view, promotion.device_id, settings)
            yield stance_of(promotion.level, promotion.phase, judged_by)
        if not promotion.effective and promotion.device_id == device.id and _takes_out(promotion):
            yield Verdict.NO_NEW_JOBS, Handling.NONE
    for hold in view.holds:
        if hold.device_id == device.id:
            yield _HELD[hold.kind]


def _takes_out(promotion: Promotion) -> bool:
    return promotion.level in (Level.SEPARATE_NPU, Level.MANUALLY_SEPARATE_NPU)


def _of_its_job(view: View, condition: Condition) -> Handling:
    """Of the node nobody knows whose it was."""
    (device,) = (each for each in view.devices if each.id == condition.device_id)
    if device.kind not in (Kind.CHIP, Kind.INSTANCE):
        return Handling.NONE
    return Handling.RESCHEDULE if condition.grade.rescheduling else Handling.RESTART_JOB


def _restarts_its_job_only(view: View, condition: Condition, catalog: Catalog) -> bool:
    """Where its row, or the driver of the chip, says that this needs no recovery."""
    if condition.level not in (Level.RESTART_REQUEST, Level.RESTART_BUSINESS):
        return False
    (device,) = [one for one in view.devices if one.id == condition.device_id]
    named_by_driver = device.attributes.get("recovery_action") == "told"
    recovery = _recovery(condition, catalog)
    return recovery is Recovery.NONE or (recovery is Recovery.VENDOR and named_by_driver)


def _recovery(condition: Condition, catalog: Catalog) -> Recovery:
    row = row_of(catalog, condition.code)
    return Recovery.LEVEL if row is None else row.recovery


def _affects(promotion: Promotion, catalog: Catalog) -> Affects:
    row = row_of(catalog, promotion.code)
    return Affects.SELF if row is None else row.affects


def _levels(view: View, device: DeviceView, catalog: Catalog) -> Iterator[Level]:
    for condition in view.conditions:
        of_node = condition.grade.affects is Affects.NODE and device.name == NODE
        if condition.grade.affect_verdict and (of_node or condition.device_id == device.id):
            yield condition.level
    for promotion in view.promotions:
        of_node = _affects(promotion, catalog) is Affects.NODE and device.name == NODE
        if promotion.effective and (of_node or promotion.device_id == device.id):
            yield promotion.level


def _reaches(view: View, device_id: str, affects: Affects, device: DeviceView) -> bool:
    if device_id == device.id:
        return True
    if affects is Affects.NODE:
        return device.name == NODE
    if affects is not Affects.CHIPS_BEHIND or device.kind is not Kind.CHIP:
        return False
    (port,) = [one for one in view.devices if one.id == device_id]
    above = device.attributes.get("upstream", "").split(",")
    return port.attributes.get("pci", "?") in above
