"""Why a reset is not begun, which setting is the reason, what would help, and what an order would do now.

The text is the same for every order that meets a reason. Everything here only reads the state.
"""

from dataclasses import dataclass

from nodeagent.core.catalog.settings import ResetSettings
from nodeagent.core.machines import reset_blockers
from nodeagent.core.machines.resets import FIRST_STAGE
from nodeagent.core.model import Condition, Device, Kind, Reset, ResetMode
from nodeagent.core.state import limits
from nodeagent.core.state.state import EngineState

ReasonAndKey = tuple[str, str]
"""The text for the person, and the key of the configuration that it is about; ("", ""): nothing."""

NOTHING: ReasonAndKey = ("", "")

DONE = (ResetMode.ASK, ResetMode.ON)
"""The modes in which resets are done."""


def why_switched_off(settings: ResetSettings, device: Device) -> ReasonAndKey:
    """Why a reset of the device would not be done, and how a person has it done all the same."""
    if settings.forbidden:
        again = "once that is over, reload the configuration"
        return f"resets are forbidden, also single ones by order: {settings.forbidden}; {again}", ""
    mode = settings.of_vendor(device.vendor)
    if mode in DONE:
        return NOTHING
    key = f"reset.modes.{device.vendor}" if device.vendor in settings.modes else "reset.mode"
    means = ", so that they are only reported" if mode is ResetMode.DRY_RUN else ""
    this_one = f'to have this one done: nodeagent reset {device.name} --once --reason "..."'
    each_one = f'to have each of them done: {key} = "ask" or "on", and a reload'
    off = f'resets of {device.vendor} chips are switched off: {key} is "{mode}"{means}'
    return f"{off}; {this_one}; {each_one}", key


def can_be_ordered(device: Device) -> bool:
    """Whether there is a way to reset it, by its driver."""
    return device.kind is Kind.CHIP and device.vendor != "" and not device.traits.no_reset


def why_switched_off_for_faults(state: EngineState, device: Device) -> ReasonAndKey:
    """The same of a chip with faults that only a reset ends, as an addition to another text."""
    said, key = why_switched_off(state.lookup.settings.reset, device)
    ended = [each.code for each in state.on(Condition, device.id) if reset_blockers.wants(state, each)]
    if not can_be_ordered(device) or not said or not ended:
        return NOTHING
    return f"; a reset ends {', '.join(dict.fromkeys(ended))}, but {said}", key


def why_refused(state: EngineState, device: Device, once: bool) -> ReasonAndKey:
    """Why it begins nothing, ("", "") where it begins. ``once``: it is to be done though resets are switched
    off here; nothing else gives way.
    """
    settings = state.lookup.settings.reset
    if device.kind is not Kind.CHIP:
        return f"{device.name} is not a chip: only NPUs and GPUs are reset", ""
    off, setting = why_switched_off(settings, device)
    if settings.forbidden:
        return off, setting
    members = reset_blockers.group_of(state, device)
    if why := _of_any_order(state, device, members):
        return why, ""
    not_yet = _for_now(state, members)
    if not off or once:
        return not_yet, ""
    return (f"{off}; but not yet: {not_yet}" if not_yet else off), setting


def _of_any_order(state: EngineState, device: Device, members: tuple[str, ...]) -> str:
    """What no other order would change: nothing can reset it, or it is being reset."""
    if device.gone:
        return f"{device.name} is no longer there: {device.gone}"
    if not device.vendor:
        return f"no driver lists {device.name}, so nothing here can reset it"
    if (other := reset_blockers.covering(state, members)) is not None:
        names = reset_blockers.names(state, other.members)
        there = f"{other.id} of {names} is in progress already ({other.stage})"
        return (
            f"{there}; to have it done: nodeagent approve {device.name}" if _may_be_approved(other) else there
        )
    return reset_blockers.never(state, members)


def _for_now(state: EngineState, members: tuple[str, ...]) -> str:
    settings = state.lookup.settings.reset
    if reason := reset_blockers.barrier(state, members):
        return f"{reason}; clear that and release it first"
    if spent := reset_blockers.exhausted(state, members, settings):
        return reset_blockers.limit_text(state, spent, settings)
    if len(state.cells[Reset]) >= limits.MAX_RESETS:
        return f"{limits.MAX_RESETS} resets are kept already"
    return ""


def _may_be_approved(reset: Reset) -> bool:
    return reset.mode is ResetMode.ASK and reset.is_pending and not reset.approved


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """How many resets of the last ``window_ns`` count against the limit of a device, or of the node."""

    device: str
    resets: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What would happen ``after_ns`` the order at the earliest; None: when it is done depends on others."""

    after_ns: int | None
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """``devices`` are names, the one asked for first. ``refused`` is why nothing would begin, "" if it would,
    ``setting`` the key of the configuration that refuses it. ``once``: it would be done by order alone,
    though resets are switched off.

    ``blocked_by`` is what blocks its start now and may go away by itself. ``window_ns`` is that of
    the limits ``used``.
    """

    devices: tuple[str, ...]
    mode: ResetMode
    refused: str
    setting: str = ""
    once: bool = False
    blocked_by: tuple[str, ...] = ()
    used: tuple[Used, ...] = ()
    window_ns: int = 0
    steps: tuple[Step, ...] = ()


def dry_run(state: EngineState, device: Device, once: bool) -> DryRun:
    settings = state.lookup.settings.reset
    mode = settings.of_vendor(device.vendor)
    refused, setting = why_refused(state, device, once)
    if device.kind is not Kind.CHIP:
        return DryRun(devices=(device.name,), mode=mode, refused=refused)
    members = reset_blockers.group_of(state, device)
    by_order = not refused and mode not in DONE
    return DryRun(
        devices=tuple(state.device(device_id).name for device_id in members),
        mode=ResetMode.ON if by_order else mode,
        refused=refused,
        setting=setting,
        once=by_order,
        blocked_by=_blocked_by(state, device, members, settings),
        used=_used(state, members, settings),
        window_ns=settings.limit_window_ns,
        steps=() if refused else _steps(members, settings),
    )


def _blocked_by(
    state: EngineState, device: Device, members: tuple[str, ...], settings: ResetSettings
) -> tuple[str, ...]:
    """As if it had just been proposed and confirmed by a poll."""
    proposed = Reset(
        id="",
        asker_id=device.id,
        members=members,
        mode=settings.of_vendor(device.vendor),
        stage=FIRST_STAGE,
        proposed_ns=state.now_ns,
        due_ns=None,
        confirmed=True,
    )
    found = reset_blockers.of_start(state, proposed, settings)
    cooled_ns = reset_blockers.cooled_ns(state, settings)
    if cooled_ns <= state.now_ns:
        return found
    return (*found, f"the last reset ended less than {_seconds(settings.cool_down_ns)} ago")


def _used(state: EngineState, members: tuple[str, ...], settings: ResetSettings) -> tuple[Used, ...]:
    limits = [(each, settings.limit) for each in members] + [(state.node_id, settings.node_limit)]
    return tuple(
        Used(
            device=state.device(each).name,
            resets=reset_blockers.count(state, each, settings),
            limit=limit,
        )
        for each, limit in limits
    )


def _steps(members: tuple[str, ...], settings: ResetSettings) -> tuple[Step, ...]:
    whom = "it" if len(members) == 1 else f"all {len(members)} together"
    announced_ns = settings.announce_ns
    return (
        Step(after_ns=0, what="it is proposed; every device above takes no new work"),
        Step(after_ns=announced_ns, what="once nothing blocks it, it starts, and counts towards the limits"),
        Step(after_ns=announced_ns, what=f"the driver resets {whom}"),
        Step(
            after_ns=None, what=f"polls must show every device healthy within {_seconds(settings.verify_ns)}"
        ),
        Step(after_ns=None, what="the devices take work again"),
    )


def _seconds(length_ns: int) -> str:
    return f"{length_ns / 1e9:g} s"
