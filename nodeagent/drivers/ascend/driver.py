"""The driver ``ascend``: the NPUs of the node, read by libdcmi.so.

The source thread lists the chips by calls that the host's driver answers, so that a chip that hangs cannot
delay it. Calls to a chip are made in other threads, also at the start. Events arrive by the library's
callback and only speed up reporting: each poll lists the active codes. The driver runs no command and resets
nothing.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import structs

from nodeagent.drivers.api import CallFailed, Driver, Emit, Population, Reading, Unavailable
from nodeagent.drivers.ascend import dcmi, opening
from nodeagent.drivers.ascend.active_codes import UBOE_PORT_DOWN, UnifiedBusPorts, ethernet_ports
from nodeagent.drivers.ascend.dcmi import ChipPlace, DcmiLibrary
from nodeagent.drivers.ascend.dcmi_calls import DcmiGeneration, NotSupported
from nodeagent.drivers.ascend.events import LIST_LEADS_S, Listener
from nodeagent.drivers.ascend.opening import listed_by_pci, missing_chips, not_opened
from nodeagent.drivers.ascend.reset_groups import reset_groups
from nodeagent.drivers.ascend.users import HangRule
from nodeagent.drivers.ascend.watched_chip import REMOVED, WatchedChip
from nodeagent.drivers.shared.pci import HUAWEI, Bus, PciFunction
from nodeagent.wire import Configure, Device, Missing, Pattern, Renew

LOOK_LIMIT_S: Final = 3.0
"""How long the first look at all chips may take; one that takes longer is listed without its identity."""

ENUMERATE_EACH: Final = 10
"""The cards are listed at each poll of the source, the numbers of their chips each so many."""

PCI_EACH: Final = 60
"""So many polls of the source apart PCI is read again: virtual machines take NPUs, and give them back."""

NOT_SEEN: Final = "chips are missing, and this process lists only those that it found when it began"

NO_EVENTS: Final = "it was refused the events, and any later subscription of this process would be"
"""As the vendor's library has it (dsmi_fault_event.c, ``dsmi_subscribe_fault_event``)."""

_AS_THE_VENDOR: Final = HangRule()


def create(configure: Configure, emit: Emit) -> Driver:
    """``config`` keys: ``library``, ``sysfs`` and ``procfs``."""
    config = configure.config
    return AscendDriver(
        library=str(config.get("library", "")),
        sysfs=Path(str(config.get("sysfs", "/sys"))),
        procfs=Path(str(config.get("procfs", "/proc"))),
        skip=frozenset(configure.skip),
        emit=emit,
    )


class AscendDriver:
    """Devices are ``npu<physical id>``."""

    def __init__(
        self,
        *,
        library: str,
        sysfs: Path,
        procfs: Path,
        skip: frozenset[str],
        emit: Emit,
        hang_rule: HangRule = _AS_THE_VENDOR,
        list_leads_s: float = LIST_LEADS_S,
    ) -> None:
        self._configured = library
        self._bus = Bus(sysfs, HUAWEI)
        self._procfs = procfs
        self._hang_rule = hang_rule
        self._list_leads_s = list_leads_s
        self._skip = skip
        self._emit = emit
        self._listener = Listener(emit.enqueue)
        self._ports = UnifiedBusPorts()
        self._library: DcmiLibrary | None = None
        self._version = ""
        self._expected: Sequence[PciFunction] = ()
        self._chips: Mapping[str, WatchedChip] = {}
        self._here: Mapping[str, WatchedChip] = {}
        self._cards: list[int] = []
        self._turn = 0
        self._subscribed = False
        self._is_refused_events = False
        self._refused_before = 0
        self._troubles: dict[str, str] = {}
        self._missing: Sequence[Missing] = ()

    def open(self) -> None:
        self._expected = listed_by_pci(self._bus)
        opening.check_namespace(self._procfs)
        try:
            self._library = dcmi.open_library(self._configured)
        except Unavailable as error:
            raise not_opened(opening.explained(error), self._expected) from error
        try:
            self._version = self._library.driver_version()
        except CallFailed as error:
            self._warn("version", f"the driver's version is unknown: {error}")

    def devices(self) -> Population:
        library = self._opened()
        if self._turn == 1:
            # From now on the daemon knows the devices, and events can be reported.
            self._emit.enqueue(opening.OVER)
            self._subscribe(library)
        if self._is_refused_events:
            self._emit(Renew(reason=NO_EVENTS))
        cards = library.cards()
        if cards != self._cards or self._turn % ENUMERATE_EACH == 0:
            self._enumerate(library, cards)
        if self._turn % PCI_EACH == PCI_EACH - 1:
            self._look_at_pci()
        self._miss()
        if self._missing and self._turn:
            self._emit(Renew(reason=NOT_SEEN, lists="more"))
        self._turn += 1
        groups = reset_groups({name: chip.sitting for name, chip in self._here.items()})
        return Population(
            devices=tuple(self._described(chip, groups[name]) for name, chip in self._here.items()),
            missing=self._missing,
            readings={
                "events_total": self._listener.received,
                "refused_values_total": self._refused(),
                "subscribed": float(self._subscribed),
            },
        )

    def poll(self, device: str) -> Reading:
        chip = self._chips.get(device)
        if chip is None:
            raise CallFailed(f"the library no longer lists {device}")
        return chip.poll()

    def reload(self, patterns: Sequence[Pattern]) -> None:
        """It has no patterns."""

    def close(self) -> None:
        """The library has no way to let go; the process ends next."""

    # ------------------------------------------------------------------ in pieces

    def _opened(self) -> DcmiLibrary:
        if self._library is None:
            raise CallFailed("the library is not open")
        return self._library

    def _enumerate(self, library: DcmiLibrary, cards: list[int]) -> None:
        """A card that cannot be listed for now keeps the chips that it had."""
        found: list[ChipPlace] = []
        for card in cards:
            try:
                found += library.places(card)
                self._troubles.pop(f"card {card}", None)
            except CallFailed as error:
                self._warn(f"card {card}", f"card {card} cannot be listed: {error}")
                found += [chip.place for chip in self._chips.values() if chip.place.card == card]
        chips = {}
        for place in sorted(found, key=lambda place: place.physical):
            device = f"npu{place.physical}"
            if device in chips:
                self._warn(device, f"two chips report the name {device}; only one of them is watched")
                continue
            known = self._chips.get(device)
            if known is not None and known.place.address == place.address:
                # Its logic id may have changed, which is no more than the name that events have for it.
                known.place = place
                chips[device] = known
            else:
                chips[device] = self._watch(library, place)
        self._cards = cards
        gone = [chip for chip in self._chips.values() if chip not in chips.values()]
        self._refused_before += sum(chip.refused for chip in gone)
        for chip in gone:
            chip.leave()
        fresh = [chip for name, chip in chips.items() if chip is not self._chips.get(name)]
        self._look(chip for chip in fresh if chip.device not in self._skip)
        self._chips = chips
        self._ports.expect(chips.keys(), time.clock_gettime_ns(time.CLOCK_BOOTTIME))
        self._listener.expect({chip.place.logic: chip.events for chip in chips.values()})

    def _watch(self, library: DcmiLibrary, place: ChipPlace) -> WatchedChip:
        return WatchedChip(
            device=f"npu{place.physical}",
            place=place,
            chip=partial(library.chip, place),
            listener=self._listener,
            derive=self._derive if library.generation is DcmiGeneration.V2 else None,
            procfs=self._procfs,
            hang_rule=self._hang_rule,
            first_turn=place.physical,
            list_leads_s=self._list_leads_s,
        )

    def _refused(self) -> float:
        now = sum(chip.refused for chip in self._chips.values())
        return float(self._listener.refused + self._refused_before + now)

    def _described(self, chip: WatchedChip, group: str) -> Device:
        """With what the host knows of the slot, and what follows from the others."""
        device = chip.described()
        attributes = {**device.attributes, "group": group}
        if self._version:
            attributes["driver"] = self._version
        for function in self._expected:
            if function.upstream and function.address == attributes.get("pci"):
                attributes["upstream"] = ",".join(function.upstream)
        return structs.replace(device, attributes=attributes)

    def _look(self, chips: Iterable[WatchedChip]) -> None:
        """Each in a thread that bears its device's name, so that one that is stuck is known by it."""
        threads = [threading.Thread(target=_named(chip), daemon=True) for chip in chips]
        for thread in threads:
            thread.start()
        until_s = time.monotonic() + LOOK_LIMIT_S
        for thread in threads:
            thread.join(max(0.0, until_s - time.monotonic()))

    def _derive(self, device: str, active: set[str], now_ns: int) -> tuple[set[str], bool]:
        down = self._chips[device].events.ports(UBOE_PORT_DOWN) if device in self._chips else 0
        derived = self._ports.derive(device, active, now_ns)
        return (derived or set()) | ethernet_ports(active, down), derived is not None

    def _subscribe(self, library: DcmiLibrary) -> None:
        """Without events everything is reported all the same, up to a poll later."""
        try:
            library.subscribe(self._listener.take)
        except CallFailed as error:
            self._is_refused_events = not isinstance(error, NotSupported)
            self._warn("events", f"no events, only polls: {error}")
        else:
            self._subscribed = True

    def _look_at_pci(self) -> None:
        try:
            self._expected = listed_by_pci(self._bus, self._expected)
            self._troubles.pop("pci", None)
        except Unavailable as error:
            self._warn("pci", str(error))

    def _miss(self) -> None:
        self._here = {name: chip for name, chip in self._chips.items() if not chip.is_removed}
        removed = [chip for name, chip in self._chips.items() if name not in self._here]
        slots = sorted(chip.attributes.get("pci") or chip.device for chip in removed)
        others = [function for function in self._expected if function.address not in slots]
        addresses = [chip.attributes.get("pci", "") for chip in self._here.values()]
        self._missing = (
            *missing_chips(others, addresses),
            *(Missing(device=slot, reason=REMOVED) for slot in slots),
        )

    def _warn(self, trouble: str, text: str) -> None:
        """On stderr, which the daemon logs; the same thing once for as long as the trouble lasts."""
        if self._troubles.get(trouble) != text:
            self._troubles[trouble] = text
            print(text, file=sys.stderr, flush=True)


def _named(chip: WatchedChip) -> Callable[[], None]:
    def run() -> None:
        task = Path(f"/proc/self/task/{threading.get_native_id()}/comm")
        task.write_text(chip.device[:15])
        chip.look()

    return run
