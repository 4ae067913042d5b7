"""What a person's order to reset a device would do now: who, what blocks it, and step by step what.

A pure reading of the state, in words that name who or what. It changes nothing and proposes nothing.
"""

from dataclasses import dataclass

from nodeagent.core.catalog.settings import ResetSettings
from nodeagent.core.model import Device, Kind, Reset, ResetMode
from nodeagent.core.resets import blockers, lifecycle, past_resets, refusal, switched_off
from nodeagent.core.state.state import State


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
    ``setting`` the key of the configuration that says so. ``once``: it would be done by order alone, though
    resets are switched off.

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


def dry_run(state: State, device: Device, once: bool) -> DryRun:
    settings = state.lookup.settings.reset
    mode = settings.of_vendor(device.vendor)
    refused, setting = refusal.of_order(state, device, once)
    if device.kind is not Kind.CHIP:
        return DryRun(devices=(device.name,), mode=mode, refused=refused)
    members = blockers.group_of(state, device)
    by_order = not refused and mode not in switched_off.DONE
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
    state: State, device: Device, members: tuple[str, ...], settings: ResetSettings
) -> tuple[str, ...]:
    """As if it had just been proposed and confirmed by a poll."""
    proposed = Reset(
        id="",
        asker_id=device.id,
        members=members,
        mode=settings.of_vendor(device.vendor),
        stage=lifecycle.FIRST_STAGE,
        proposed_ns=state.now_ns,
        due_ns=None,
        confirmed=True,
    )
    found = blockers.of_start(state, proposed, settings)
    cooled_ns = blockers.cooled_ns(state, settings)
    if cooled_ns <= state.now_ns:
        return found
    return (*found, f"the last reset ended less than {_seconds(settings.cool_down_ns)} ago")


def _used(state: State, members: tuple[str, ...], settings: ResetSettings) -> tuple[Used, ...]:
    limits = [(each, settings.limit) for each in members] + [(state.node_id, settings.node_limit)]
    return tuple(
        Used(
            device=state.device(each).name,
            resets=past_resets.count(state, each, settings),
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
