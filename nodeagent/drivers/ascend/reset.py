"""Resets NPUs: in-band, one call for each group; on an A3 out of band if that fails.

The library resets the whole group of the given chip, so one call is enough. It does not check for processes
on the chips, so each chip is checked right before. The driver refuses a reset while any process has a call
under way on a chip (``dms_notify_device_hotreset`` of the kernel's dms_hotreset.c: "Dms task_cnt not zero"),
and exporters call often. So the call is repeated after growing pauses, as MindCluster does, as long as no
reset has begun. The order of the out-of-band calls is MindCluster's. Only the boot status shows success; the
answer of a reset does not. This module judges no fault.

A process that starts after a chip has dropped does not find its card (``dcmi_init_server_per_device`` of
dcmi_init_for_server.c: the card's id is -1). It can neither address such a chip nor read its processes. Where
all chips are reset together, any other chip resets it too; elsewhere the reset is refused. On a 300I Duo the
remaining die becomes the library's first, and the driver resets the PCI bus of the die that it is given
(``devdrv_hot_reset_single_device`` of devdrv_ctrl.c): the working one, which helps nothing.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from nodeagent.drivers.api import CallFailed, Unavailable
from nodeagent.drivers.ascend import dcmi, identity, users
from nodeagent.drivers.ascend.dcmi import ChipPlace, DcmiLibrary
from nodeagent.drivers.ascend.dcmi_calls import DcmiChip, NotSupported
from nodeagent.drivers.ascend.reset_groups import NODE_GROUP, ProductSeries
from nodeagent.drivers.shared.resetting import (
    ResetFailed,
    ResetMember,
    ResetOrder,
    ResetRefused,
    ResetTimedOut,
)
from nodeagent.drivers.shared.users import user_of

OUTBAND: Final = 0
INBAND: Final = 1
"""``dcmi_reset_channel``."""

STARTED: Final = 16
"""``DCMI_SYSTEM_START_FINISH``: the only boot status with which a chip can be used."""

CHANNEL_FIT: Final = 1
RESCAN_PAUSE_S: Final = 3.0
POLL_EACH_S: Final = 1.0

TRY_PAUSES_S: Final = (1.0, 2.0, 4.0)
"""Between the tries of a reset that is refused."""

FREE_LIMIT_S: Final = 5.0
"""A process that has just ended may still be listed for a moment."""

DIES_OF_A_MODULE: Final = 2
"""The dies of a module of an A3; their physical ids follow each other."""

KILL_LIST: Final = Path("/etc/custom_process.cfg")

MAX_NAMED: Final = 8


def groups(devices: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """As ``reset_groups`` has made them: also a chip that cannot be read is in one."""
    return {name: attributes.get("group", "") for name, attributes in devices.items()}


def unlisted(devices: Mapping[str, Mapping[str, str]]) -> str:
    """All chips of 910B with HCCS between them. Others are one group only for want of knowledge of them."""
    series = {attributes["series"] for attributes in devices.values() if "series" in attributes}
    are_one = set(groups(devices).values()) == {NODE_GROUP} and series == {ProductSeries.ASCEND_910B}
    return NODE_GROUP if are_one else ""


def reset(order: ResetOrder) -> None:
    """Raises ``ResetRefused``, ``ResetFailed`` and ``ResetTimedOut``."""
    try:
        library = dcmi.open_library(order.library)
        places = _places(library)
        _check_cards(places, order.members)
        chips = _chips(library, places, order.members)
        _check_free(chips, Path(order.procfs))
    except (Unavailable, CallFailed) as error:
        raise ResetRefused(f"the chips or their processes cannot be read: {error}") from error
    for member in order.members:
        if member.name not in chips:
            order.step(f"{member.name} has dropped, and is not found: it is reset with the others")
    _report_killed(library, places, order)
    first = chips[_first(order.members, places)]
    try:
        _reset_inband(library, first, chips, order)
    except (ResetFailed, ResetTimedOut) as failure:
        if not any(_is_a3(member) for member in order.members):
            raise
        order.step(f"in-band: {failure}")
        _reset_outband(library, first, chips, order)


def _report_killed(library: DcmiLibrary, places: Mapping[str, ChipPlace], order: ResetOrder) -> None:
    """Report which processes the library will kill by itself, on any chip of the machine: those that are
    reset have no users.
    """
    try:
        listed = users.killed_at_reset(Path(order.procfs), KILL_LIST)
    except OSError as error:
        order.step(f"the processes that the library will kill are unknown: {error}")
        return
    for name, place in places.items() if listed else ():
        try:
            on_chip = [pid for pid in library.chip(place).processes() if pid in listed]
        except CallFailed as error:
            order.step(f"the processes that the library will kill on {name} are unknown: {error}")
            continue
        for pid in on_chip:
            order.step(
                f"the vendor's library kills {listed[pid]} (pid {pid}) on {name}: {KILL_LIST} lists it"
            )


def _first(members: tuple[ResetMember, ...], places: Mapping[str, ChipPlace]) -> str:
    """The chip that is named to the library: the first of the card that asked, or of all that were found. Of
    a 300I Duo it takes no other (``dcmi_set_device_reset``: -8255).
    """
    found = [places[member.name] for member in members if member.name in places]
    asked = places.get(members[0].name)
    of_card = [place for place in found if asked is None or place.card == asked.card]
    first = min(of_card, key=lambda place: place.address)
    return next(name for name, place in places.items() if place is first)


def _reset_inband(
    library: DcmiLibrary, first: DcmiChip, chips: Mapping[str, DcmiChip], order: ResetOrder
) -> None:
    order.step("reset in-band")
    before = _boot_statuses(chips)
    pauses_s = iter(TRY_PAUSES_S)
    while (error := _refusal(first)) is not None:
        pause_s = next(pauses_s, None)
        if pause_s is None or isinstance(error, NotSupported) or _boot_statuses(chips) != before:
            raise ResetFailed(str(error)) from error
        order.step(f"{error}; once more in {pause_s:g} s")
        time.sleep(pause_s)
        try:
            _check_free(chips, Path(order.procfs))
        except CallFailed as trouble:
            raise ResetFailed(
                f"{error}; since then the processes on the chips cannot be read: {trouble}"
            ) from trouble
    _await_start(library, chips, order)


def _refusal(first: DcmiChip) -> CallFailed | None:
    try:
        first.call("reset", INBAND)
    except CallFailed as error:
        return error
    return None


def _reset_outband(
    library: DcmiLibrary, first: DcmiChip, chips: Mapping[str, DcmiChip], order: ResetOrder
) -> None:
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
    _await_start(library, chips, order)


def _await_start(library: DcmiLibrary, chips: Mapping[str, DcmiChip], order: ResetOrder) -> None:
    """A chip that starts may refuse to answer: only its time distinguishes it from one that is lost. One that
    was not found is looked for once the others have started.
    """
    order.step("wait for the chips to start")
    until_s = time.monotonic() + order.start_limit_s
    waiting = dict(chips)
    lost = [member for member in order.members if member.name not in chips]
    while waiting or lost:
        statuses = _boot_statuses(waiting)
        waiting = {name: chip for name, chip in waiting.items() if statuses[name] != STARTED}
        if lost and not waiting:
            waiting = _find(library, lost)
            lost = [member for member in lost if member.name not in waiting]
        if (waiting or lost) and time.monotonic() >= until_s:
            missing = [f"{name} ({statuses.get(name, 'not asked yet')})" for name in waiting]
            missing += [f"{member.name} (not found)" for member in lost]
            raise ResetTimedOut(
                f"not started within {order.start_limit_s:g} s, by boot status: {', '.join(missing)}; "
                f"{STARTED} is started"
            )
        if waiting or lost:
            time.sleep(POLL_EACH_S)


def _find(library: DcmiLibrary, members: Sequence[ResetMember]) -> dict[str, DcmiChip]:
    """Those that the library lists after it was initialised again."""
    try:
        library.initialise_again()
        places = _places(library)
    except CallFailed:
        return {}
    return {member.name: library.chip(places[member.name]) for member in members if member.name in places}


def _boot_statuses(chips: Mapping[str, DcmiChip]) -> dict[str, int | str]:
    return {name: _boot_status(chip) for name, chip in chips.items()}


def _boot_status(chip: DcmiChip) -> int | str:
    try:
        return chip.signed("boot_status")
    except CallFailed as error:
        return str(error)


def _places(library: DcmiLibrary) -> dict[str, ChipPlace]:
    """The place of each chip, by its name. Raises ``CallFailed``."""
    return {f"npu{place.physical}": place for card in library.cards() for place in library.places(card)}


def _check_cards(places: Mapping[str, ChipPlace], members: Sequence[ResetMember]) -> None:
    """Of an A3 from which the driver has removed a die, a new process takes the others for cards as they
    follow each other in its list (``dcmi_init_phy_id_list`` of dcmi_init_for_server.c takes a logic id for a
    place): a reset by card then hits other dies.
    """
    if not any(_is_a3(member) for member in members):
        return
    modules: dict[int, set[int]] = {}
    for place in places.values():
        modules.setdefault(place.card, set()).add(place.physical // DIES_OF_A_MODULE)
    mixed = [card for card, numbers in modules.items() if len(numbers) > 1]
    if mixed:
        named = ", ".join(name for name, place in places.items() if place.card == mixed[0])
        raise ResetRefused(
            f"the library takes {named} for one card, and they are of two: a die is missing, and which are "
            "reset together is unknown; power-cycle the node"
        )


def _chips(
    library: DcmiLibrary, places: Mapping[str, ChipPlace], members: Sequence[ResetMember]
) -> dict[str, DcmiChip]:
    """The chips by name, each looked at once more: what sits there must be what was judged. Without those
    that are not listed, where they are reset with the others all the same. Raises ``CallFailed``.
    """
    listed = [member for member in members if member.name in places]
    lost = [member.name for member in members if member.name not in places]
    if lost and (not listed or unlisted({each.name: each.attributes for each in listed}) == ""):
        raise ResetRefused(f"the library does not list {', '.join(lost)}")
    return {member.name: _chip(library, places[member.name], member) for member in listed}


def _chip(library: DcmiLibrary, place: ChipPlace, member: ResetMember) -> DcmiChip:
    chip = library.chip(place)
    try:
        die = identity.read_die(chip)
    except CallFailed:
        # A chip that needs a reset may be unable to report its id.
        return chip
    if die and member.identity and die != member.identity:
        raise ResetRefused(f"another part sits in the place of {member.name}: {die}, not {member.identity}")
    return chip


def _check_free(chips: Mapping[str, DcmiChip], procfs: Path) -> None:
    """Hooks and evidence took their time since the daemon saw them free. Raises ``CallFailed``."""
    until_s = time.monotonic() + FREE_LIMIT_S
    while on_chip := [(name, pid) for name, chip in chips.items() for pid in chip.processes()]:
        if time.monotonic() >= until_s:
            named = [f"{name} is used by {_command(procfs, pid)} (pid {pid})" for name, pid in on_chip]
            more = [f"{len(named) - MAX_NAMED} more"] if len(named) > MAX_NAMED else []
            raise ResetRefused("; ".join(named[:MAX_NAMED] + more))
        time.sleep(min(POLL_EACH_S, FREE_LIMIT_S))


def _command(procfs: Path, pid: int) -> str:
    user = user_of(procfs, pid)
    return user.command if user is not None and user.command else "a process"


def _is_a3(member: ResetMember) -> bool:
    return member.attributes.get("series", "") == ProductSeries.A3
