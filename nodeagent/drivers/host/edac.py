"""Memory modules and their error counts, from EDAC's counters in sysfs.

    mc/mc0/dimm3/   dimm_label dimm_location size dimm_mem_type dimm_ce_count dimm_ue_count     or rank3/
    mc/mc0/csrow2/  ch0_dimm_label ... size_mb mem_type ce_count ue_count     if modules are not known
    mc/mc0/         ce_noinfo_count ue_noinfo_count     errors without a known module

(Documentation/ABI/testing/sysfs-devices-edac and drivers/edac/edac_mc_sysfs.c of Linux.) The counters start
at 0 when their driver is loaded, so at each boot, and when somebody writes to ``reset_counters``. Labels may
be set after the boot. No counter is reset here; counter rules decide how many errors are too many.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.core.model import Assertion, Kind
from nodeagent.drivers.api import CallFailed, Reading
from nodeagent.drivers.host.check import number_of, optional
from nodeagent.wire import MAX_DEVICES, Active, Device, Signal

CORRECTED: Final = "DIMM_CE"
UNCORRECTED: Final = "DIMM_UE"

DESCRIBE: Final = 6
"""At every so many listings, modules are described again."""

_CONTROLLER: Final = re.compile(r"mc\d+")
_MODULE: Final = re.compile(r"(?:dimm|rank)\d+")
_ROW: Final = re.compile(r"csrow\d+")
_LABEL: Final = re.compile(r"ch\d+_dimm_label")
_NOT_IN_A_NAME: Final = re.compile(r"[^!-~]|/")
_MAX_LABEL: Final = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """``place`` is its folder, such as ``mc0/dimm3``; ``corrected`` and ``uncorrected`` are its counters."""

    place: str
    corrected: Path
    uncorrected: Path
    label: str = ""
    attributes: Mapping[str, str]


class Memory:
    """``sysfs`` is the root that holds ``devices/system/edac``."""

    def __init__(self, sysfs: Path) -> None:
        self._root = sysfs / "devices/system/edac/mc"
        self._listings = 0
        self._places: frozenset[str] = frozenset()
        self._watched: dict[str, Watched] = {}

    def is_here(self) -> bool:
        return any(True for _ in self._controllers())

    def devices(self) -> tuple[Device, ...]:
        """Raises ``OSError``."""
        self._list()
        return tuple(_device(name, watched.module) for name, watched in self._watched.items())

    def watched(self, device: str) -> "Watched":
        """Raises ``CallFailed``."""
        if (found := self._watched.get(device)) is None:
            raise CallFailed(f"EDAC lists no {device!r} any more")
        return found

    def _list(self) -> None:
        places = frozenset(self._folders())
        if places != self._places or self._listings % DESCRIBE == 0:
            modules = [module for place in sorted(places, key=_natural) for module in self._described(place)]
            known = {watched.module.place: watched for watched in self._watched.values()}
            names = named(modules)
            self._watched = {
                name: (known.get(module.place) or Watched(name, self._before(module))).described(name, module)
                for name, module in list(zip(names, modules, strict=True))[:MAX_DEVICES]
            }
            self._places = places
        self._listings += 1

    def _before(self, module: Module) -> tuple[int, int] | None:
        """The counters of newly listed modules, as far as they are known. A controller is listed itself once
        it has met errors of no known module: it had none while only its modules were listed.
        """
        was_listed = module.place in self._places
        had_modules = any(place.startswith(f"{module.place}/") for place in self._places)
        return (0, 0) if had_modules and not was_listed else None

    def _controllers(self) -> Iterator[Path]:
        try:
            entries = sorted(self._root.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return
        yield from (entry for entry in entries if _CONTROLLER.fullmatch(entry.name))

    def _folders(self) -> Iterator[str]:
        """What has counters: modules or ranks; rows where there are none of these; a controller that has met
        errors of no known module.
        """
        for controller in self._controllers():
            names = [entry.name for entry in controller.iterdir()]
            modules = [each for each in names if _MODULE.fullmatch(each)]
            counted = [each for each in modules if (controller / each / "dimm_ce_count").exists()]
            for name in counted or [each for each in names if _ROW.fullmatch(each)]:
                yield f"{controller.name}/{name}"
            if any(optional(controller / f"{kind}_noinfo_count") not in ("", "0") for kind in ("ce", "ue")):
                yield controller.name

    def _described(self, place: str) -> Iterator[Module]:
        folder = self._root / place
        controller, _, name = place.partition("/")
        facts = {"place": place, "controller": optional(self._root / controller / "mc_name")}
        label = ""
        if _ROW.fullmatch(name):
            counters = ("ce_count", "ue_count")
            labels = [optional(file) for file in sorted(folder.iterdir()) if _LABEL.fullmatch(file.name)]
            label = "+".join(each for each in labels if each)
            facts |= {"size_mb": optional(folder / "size_mb"), "memory_type": optional(folder / "mem_type")}
        elif name:
            counters = ("dimm_ce_count", "dimm_ue_count")
            label = optional(folder / "dimm_label")
            facts |= {
                "location": optional(folder / "dimm_location"),
                "size_mb": optional(folder / "size"),
                "memory_type": optional(folder / "dimm_mem_type"),
            }
        else:
            counters = ("ce_noinfo_count", "ue_noinfo_count")
            facts["location"] = "the controller did not report which module"
        yield Module(
            place=place,
            corrected=folder / counters[0],
            uncorrected=folder / counters[1],
            label=label,
            attributes={key: value for key, value in ({"label": label} | facts).items() if value},
        )


def named(modules: Sequence[Module]) -> Sequence[str]:
    """The names of modules: their labels, as printed on boards, or their places if these are unknown or not
    unique.
    """
    labels = [_NOT_IN_A_NAME.sub("_", module.label)[:_MAX_LABEL] for module in modules]
    times = Counter(labels)
    return [
        f"dimm:{module.place}" if not label else f"dimm:{label}" + f"@{module.place}" * (times[label] > 1)
        for label, module in zip(labels, modules, strict=True)
    ]


class Watched:
    """One module. What its counters had before its first poll is not known to be new, unless ``before`` shows
    what they had.
    """

    def __init__(self, name: str, before: tuple[int, int] | None) -> None:
        self.name = name
        self.module: Module
        self._before = before

    def described(self, name: str, module: Module) -> "Watched":
        self.name, self.module = name, module
        return self

    def poll(self) -> tuple[Reading, Sequence[Signal]]:
        """Its counters, and the errors since the poll before. Errors that were not corrected
        are active for as long as they are counted. Raises ``CallFailed``.
        """
        try:
            corrected, uncorrected = number_of(self.module.corrected), number_of(self.module.uncorrected)
        except OSError as error:
            raise CallFailed(f"{self.name}: {error}", errno=error.errno or 0) from None
        before, self._before = self._before or (corrected, uncorrected), (corrected, uncorrected)
        newly, lost = risen(before[0], corrected), risen(before[1], uncorrected)
        signals = [
            Signal(
                device=self.name, code=code, assertion=assertion, count=count, evidence=self._evidence(total)
            )
            for code, assertion, count, total in (
                (UNCORRECTED, Assertion.OCCUR, lost, uncorrected),
                (CORRECTED, Assertion.ONCE, newly, corrected),
            )
            if count
        ]
        readings = {"edac_corrected_total": float(corrected), "edac_uncorrected_total": float(uncorrected)}
        found = Active(code=UNCORRECTED, evidence=self._evidence(uncorrected))
        active = (found,) if uncorrected else ()
        return Reading(active=active, readings=readings), signals

    def _evidence(self, total: int) -> dict[str, str]:
        return {**self.module.attributes, "errors": str(total)}


def risen(before: int, now: int) -> int:
    """How much a counter has risen; one that is lower than before was reset."""
    return now - before if now >= before else now


def _device(name: str, module: Module) -> Device:
    return Device(device=name, kind=Kind.HOST, vendor="linux", attributes=dict(module.attributes))


def _natural(place: str) -> list[tuple[str, int]]:
    parts = re.findall(r"([a-z]+)(\d*)", place)
    return [(stem, int(number or 0)) for stem, number in parts]
