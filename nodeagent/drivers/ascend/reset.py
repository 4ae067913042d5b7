"""Resets NPUs: in-band once for all that the vendor resets together, on an A3 out of band where that fails.

The library resets the whole group of the chip that it is given, so one call is enough, and a second one
would begin anew; and it asks nobody who is on them, so that every chip is looked at right before. The order
of the out-of-band calls is MindCluster's. It judges no fault, and believes the boot status alone, never the
answer of a reset.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nodeagent.drivers.api import CallFailed, Unavailable
from nodeagent.drivers.ascend import dcmi, identity
from nodeagent.drivers.ascend.dcmi import Chip, Library, Place
from nodeagent.drivers.ascend.product import Series
from nodeagent.drivers.holders import holder_of
from nodeagent.drivers.resetting import Member, Order, ResetFailed, ResetRefused, ResetTimedOut

OUTBAND: Final = 0
INBAND: Final = 1
"""``dcmi_reset_channel``."""

STARTED: Final = 16
"""``DCMI_SYSTEM_START_FINISH``: the only boot status with which a chip can be used."""

CHANNEL_FIT: Final = 1
RESCAN_PAUSE_S: Final = 3.0
POLL_EACH_S: Final = 1.0

FREE_LIMIT_S: Final = 5.0
"""A process that has just ended may still be listed for a moment."""

MAX_NAMED: Final = 8


def groups(devices: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """As ``grouping`` has made them: also a chip that tells nothing is in one."""
    return {name: attributes.get("group", "") for name, attributes in devices.items()}


def reset(order: Order) -> None:
    """Raises ``ResetRefused``, ``ResetFailed`` and ``ResetTimedOut``."""
    try:
        library = dcmi.open_library(order.library)
        chips = _chips(library, order.members)
        _check_free(chips, Path(order.procfs))
    except (Unavailable, CallFailed) as error:
        raise ResetRefused(f"the chips, or who is on them, cannot be told: {error}") from error
    try:
        _reset_inband(chips, order)
    except (ResetFailed, ResetTimedOut) as failure:
        if not any(_is_a3(member) for member in order.members):
            raise
        order.step(f"in-band: {failure}")
        _reset_outband(chips, order)


def _reset_inband(chips: Mapping[str, Chip], order: Order) -> None:
    order.step("reset in-band")
    first = chips[order.members[0].name]
    try:
        first.call("reset", INBAND)
    except CallFailed as error:
        raise ResetFailed(str(error)) from error
    _await_start(chips, order)


def _reset_outband(chips: Mapping[str, Chip], order: Order) -> None:
    first = chips[order.members[0].name]
    try:
        if (state := first.signed("outband_channel")) != CHANNEL_FIT:
            raise ResetFailed(f"the out-of-band channel is not fit for a reset (state {state})")
        order.step("prepare out of band")
        first.call("pre_reset")
        order.step("reset out of band")
        first.call("reset", OUTBAND)
        time.sleep(RESCAN_PAUSE_S)
        order.step("rescan")
        first.call("rescan")
    except CallFailed as error:
        raise ResetFailed(str(error)) from error
    _await_start(chips, order)


def _await_start(chips: Mapping[str, Chip], order: Order) -> None:
    """A chip that starts may refuse to answer: only its time tells it from one that is lost."""
    order.step("wait for the chips to start")
    until_s = time.monotonic() + order.start_limit_s
    waiting = dict(chips)
    while waiting:
        said = {name: _boot_status(chip) for name, chip in waiting.items()}
        waiting = {name: chip for name, chip in waiting.items() if said[name] != STARTED}
        if waiting and time.monotonic() >= until_s:
            told = ", ".join(f"{name} ({said[name]})" for name in waiting)
            raise ResetTimedOut(
                f"not started within {order.start_limit_s:g} s, by boot status: {told}; {STARTED} is started"
            )
        if waiting:
            time.sleep(POLL_EACH_S)


def _boot_status(chip: Chip) -> int | str:
    try:
        return chip.signed("boot_status")
    except CallFailed as error:
        return str(error)


def _chips(library: Library, members: tuple[Member, ...]) -> dict[str, Chip]:
    """By name, each looked at once more: what sits there must be what was judged. Raises ``CallFailed``."""
    places = {f"npu{place.physical}": place for card in library.cards() for place in library.places(card)}
    return {member.name: _chip(library, places.get(member.name), member) for member in members}


def _chip(library: Library, place: Place | None, member: Member) -> Chip:
    if place is None:
        raise ResetRefused(f"the library no longer lists {member.name}")
    chip = library.chip(place)
    try:
        die = identity.read_die(chip)
    except CallFailed:
        # A chip that is to be reset may be beyond telling who it is.
        return chip
    if die and member.identity and die != member.identity:
        raise ResetRefused(f"another part sits in the place of {member.name}: {die}, not {member.identity}")
    return chip


def _check_free(chips: Mapping[str, Chip], procfs: Path) -> None:
    """Hooks and evidence took their time since the daemon saw them free. Raises ``CallFailed``."""
    until_s = time.monotonic() + FREE_LIMIT_S
    while held := [(name, pid) for name, chip in chips.items() for pid in chip.processes()]:
        if time.monotonic() >= until_s:
            named = [f"{name} is held by {_command(procfs, pid)} (pid {pid})" for name, pid in held]
            more = [f"{len(named) - MAX_NAMED} more"] if len(named) > MAX_NAMED else []
            raise ResetRefused("; ".join(named[:MAX_NAMED] + more))
        time.sleep(min(POLL_EACH_S, FREE_LIMIT_S))


def _command(procfs: Path, pid: int) -> str:
    holder = holder_of(procfs, pid)
    return holder.command if holder is not None and holder.command else "a process"


def _is_a3(member: Member) -> bool:
    return member.attributes.get("series", "") == Series.A3
