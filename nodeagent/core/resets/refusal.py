"""Why a person's order to reset a device begins nothing, and what would help. It proposes nothing."""

from nodeagent.core.model import Device, Kind, Reset, ResetMode
from nodeagent.core.resets import blockers, past_resets, switched_off
from nodeagent.core.resets.switched_off import Said
from nodeagent.core.state import limits
from nodeagent.core.state.state import State


def of_order(state: State, device: Device, once: bool) -> Said:
    """Why it begins nothing, ("", "") where it begins. ``once``: it is to be done though resets are switched
    off here; nothing else gives way.
    """
    settings = state.lookup.settings.reset
    if device.kind is not Kind.CHIP:
        return f"{device.name} is not a chip: only NPUs and GPUs are reset", ""
    off, setting = switched_off.why(settings, device)
    if settings.forbidden:
        return off, setting
    members = blockers.group_of(state, device)
    if why := _of_any_order(state, device, members):
        return why, ""
    not_yet = _for_now(state, members)
    if not off or once:
        return not_yet, ""
    return (f"{off}; but not yet: {not_yet}" if not_yet else off), setting


def _of_any_order(state: State, device: Device, members: tuple[str, ...]) -> str:
    """What no other order would change: nobody can reset it, or it is being reset."""
    if device.gone:
        return f"{device.name} is no longer there: {device.gone}"
    if not device.vendor:
        return f"no driver lists {device.name}, so nothing here can reset it"
    if (other := blockers.covering(state, members)) is not None:
        there = f"{other.id} of {blockers.names(state, other.members)} is in progress already ({other.stage})"
        return (
            f"{there}; to have it done: nodeagent approve {device.name}" if _may_be_approved(other) else there
        )
    return blockers.never(state, members)


def _for_now(state: State, members: tuple[str, ...]) -> str:
    settings = state.lookup.settings.reset
    if reason := blockers.barrier(state, members):
        return f"{reason}; clear that and release it first"
    if spent := past_resets.exhausted(state, members, settings):
        return past_resets.limit_words(state, spent, settings)
    if len(state.cells[Reset]) >= limits.MAX_RESETS:
        return f"{limits.MAX_RESETS} resets are kept already"
    return ""


def _may_be_approved(reset: Reset) -> bool:
    return reset.mode is ResetMode.ASK and reset.is_pending and not reset.approved
