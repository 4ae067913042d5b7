"""Resets NPUs: in-band once for all that the vendor resets together, on an A3 out of band where that fails.

The library resets the whole group of the chip that it is given, so one call is enough, and a second one
would begin anew. The order of the out-of-band calls is MindCluster's. It judges no fault, and believes
the boot status alone, never the answer of a reset.
"""

import time
from collections.abc import Mapping
from typing import Final

from nodeagent.drivers.api import CallFailed, Unavailable
from nodeagent.drivers.ascend import dcmi, identity
from nodeagent.drivers.ascend.dcmi import Chip, Library, Place
from nodeagent.drivers.resetting import Member, Order, ResetFailed, ResetRefused, ResetTimedOut

OUTBAND: Final = 0
INBAND: Final = 1
"""``dcmi_reset_channel``."""

STARTED: Final = 16
"""``DCMI_SYSTEM_START_FINISH``: the only boot status with which a chip can be used."""

CHANNEL_FIT: Final = 1
RESCAN_PAUSE_S: Final = 3.0
POLL_EACH_S: Final = 1.0


def reset(order: Order) -> None:
    """Raises ``ResetRefused``, ``ResetFailed`` and ``ResetTimedOut``."""
    try:
        library = dcmi.open_library(order.library)
        chips = _chips(library, order.members)
    except (Unavailable, CallFailed) as error:
        raise ResetRefused(f"the chips cannot be found: {error}") from error
    try:
        _reset_inband(chips, order)
    except (ResetFailed, ResetTimedOut) as failure:
        if not _is_a3(order.members[0]):
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


def _is_a3(member: Member) -> bool:
    return "910_93" in member.attributes.get("chip", "")
