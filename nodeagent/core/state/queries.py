"""What the state is asked: its cells by key, and what the indexes over them answer. It changes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.lookup import Lookup
from nodeagent.core.model import NODE, Cell, Condition, Device, Era, Job, Promotion, Report, RuleCell, Source
from nodeagent.core.state.cell_keys import TAGS, Key
from nodeagent.core.state.groups import Groups
from nodeagent.core.state.indexes import Indexes
from nodeagent.core.state.names import Names

PART_OF = "part_of"
"""The attribute of a part that holds the id of its chip: see ``core.devices.instances``."""

EXCLUDED = "excluded"
"""The attribute of a device that the configuration excludes: why. See ``core.devices.exclusion``."""

C = TypeVar("C", bound=Cell)
R = TypeVar("R", bound=RuleCell)


@dataclass(slots=True)
class Uses:
    """The ids of the devices and of the chips that a job uses, by its name and own devices; the live jobs on
    each chip; and which claims are of a supervised job. None: it is to be worked out.
    """

    devices: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = field(default_factory=dict)
    chips: dict[tuple[str, tuple[str, ...]], frozenset[str]] = field(default_factory=dict)
    on_chip: dict[str, list[Key]] | None = None
    supervised: frozenset[str] | None = None


class Queries:
    """Over cells of the types ``of``; ``State`` fills and indexes them. ``in_place`` are the chips that are
    judged as in mode graceful whatever the mode is, ``live_jobs`` those that have not ended. ``uses`` is what
    was worked out of these and still holds (``core.jobs.chips``).
    """

    def __init__(self, of: Iterable[type]) -> None:
        self.lookup = Lookup(Catalog(digest=""))
        self.cells: dict[type, dict[Key, Any]] = {each: {} for each in of}
        self.names = Names()
        self.indexes = Indexes(self.lookup)
        self.on_device = Groups[tuple[type, str]]()
        self.parts_of = Groups[str]()
        self.awaited: dict[Key, None] = {}
        self.in_place: frozenset[str] = frozenset()
        self.live_jobs: dict[Key, Job] = {}
        self.uses = Uses()

    def lookup_on(self, device_id: str) -> Lookup:
        """The lookup by which what is open on the device is judged."""
        if not self.in_place or (device := self.get(Device, device_id)) is None:
            return self.lookup
        return self.lookup.gracefully if self.chip_of(device).id in self.in_place else self.lookup

    @property
    def node_id(self) -> str:
        return self.names.get(NODE, f"slot:{NODE}")

    @property
    def era(self) -> Era:
        return self.get(Era) or Era(boot_id="", started_ns=0, digest="")

    def get(self, of: type[C], *key: str) -> C | None:
        found: C | None = self.cells[of].get((TAGS[of], *key))
        return found

    def all(self, of: type[C]) -> list[C]:
        """Every cell of a type, in order; a copy, so the caller may put and drop."""
        return list(self.cells[of].values())

    def of_rule(self, of: type[R], device_id: str, rule: str) -> list[R]:
        """The cells of a rule on a device: one for each reading of a family that it watches."""
        return [cell for cell in self.cells[of].values() if cell.device_id == device_id and cell.rule == rule]

    def about(self, device_id: str) -> list[Any]:
        """Every cell, of any type, that is keyed by the device but is not the device. A job only names the
        device whose fault stopped it.
        """
        return [
            cell
            for of, cells in self.cells.items()
            for cell in cells.values()
            if of is not Job and getattr(cell, "device_id", None) == device_id
        ]

    def device(self, device_id: str) -> Device:
        device = self.get(Device, device_id)
        assert device is not None, f"no device {device_id}"
        return device

    def chip_of(self, device: Device) -> Device:
        """The chip that the device is a part of, else the device."""
        chip_id = device.attributes.get(PART_OF)
        return device if chip_id is None else self.get(Device, chip_id) or device

    def parts(self, device_id: str) -> list[Device]:
        """The parts of a chip that are known."""
        return [self.cells[Device][key] for key in self.parts_of.get(device_id, ())]

    def condition(
        self, device_id: str, code_key: str, injected: bool = False, report: Report | None = None
    ) -> Condition | None:
        whose = "" if report is None else report.key
        key = self.indexes.open.get((device_id, code_key, injected, whose))
        found: Condition | None = None if key is None else self.cells[Condition][key]
        return found

    def stand_in(self, condition: Condition) -> Condition | None:
        """The condition, open before it, that stands for its fault now; None where it does itself."""
        key = self.indexes.open[self.indexes.place(condition)]
        other: Condition = self.cells[Condition][key]
        return None if other.id == condition.id else other

    def reported(self, report: Report) -> list[Condition]:
        """The conditions of that name, on whichever devices, whoever opened them."""
        return [self.cells[Condition][key] for key in self.indexes.reported.get(report.name, ())]

    def on(self, of: type[C], device_id: str) -> list[C]:
        """The conditions, promotions or holds on a device, in order."""
        return [self.cells[of][key] for key in self.on_device.get((of, device_id), ())]

    def on_chip(self, device_id: str) -> list[Condition]:
        """The conditions on a chip, then on its parts: the driver lists processes and faults of the chip."""
        device_ids = (device_id, *(part.id for part in self.parts(device_id)))
        return [condition for each in device_ids for condition in self.on(Condition, each)]

    def promotions(self, device_id: str, code_key: str) -> list[Promotion]:
        """The promotions of one code on a device."""
        return [self.cells[Promotion][key] for key in self.indexes.promoted.get((device_id, code_key), ())]

    def source_of(self, name: str, device_id: str) -> Source | None:
        """What is known of the source's view of a device: its own cell, else that of the whole source."""
        return self.get(Source, name, device_id) or self.get(Source, name, "")

    def awaits(self, source: str, device_id: str) -> bool:
        """True while the source has not been read (again): its timers are held, nothing is judged."""
        if not self.awaited:
            return False
        cell = self.source_of(source, device_id)
        return cell is not None and cell.awaited
