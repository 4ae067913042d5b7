"""All that the engine remembers: cells by their keys, the indexes and timers over them, and what is due to be
done.

Putting a cell replaces its predecessor. What follows from that (an index, a timer, a device to judge again)
is done by the functions that the engine registers for the type of the cell (``core.follow``): this module
knows none of them. Everything here is a function of the cells and their order, so that putting them back
restores everything. Nothing here judges or emits.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.lookup import Lookup
from nodeagent.core.model import (
    NODE,
    Action,
    Affects,
    Answer,
    Cell,
    Condition,
    Device,
    Era,
    Event,
    Job,
    Kind,
    Promotion,
    Report,
    RuleCell,
    Source,
)
from nodeagent.core.model.traits import PART_OF
from nodeagent.core.state.cells import KEYS, NEWEST_LAST, TAGS, Key, Timers, keys_of
from nodeagent.core.state.derived import Derived
from nodeagent.core.state.indexes import Groups, Indexes
from nodeagent.core.state.names import Names

C = TypeVar("C", bound=Cell)
R = TypeVar("R", bound=RuleCell)
Follower = Callable[["EngineState", Key, Any, Any], None]
"""What follows from a change of a cell: its key, the cell before (None: it is new) and after (None: it is
gone).
"""


class EngineState:
    """``catalogs`` is the shell's: every digest that an input may name must be in it before that input.
    ``followers`` are called after each change of a cell of their type. ``rule_cells`` are the types of cells
    that kinds of rules bring.

    ``now_ns`` is the rule clock, ``moment_ns`` the time of what is being handled. ``muted``: a replay emits
    nothing. ``events``, ``actions`` and ``answer`` are what the step gives out. ``dirty`` are the devices
    whose verdict is to be worked out and shown again, ``unreviewed`` those which the policies of resets and
    jobs must look at, ``overflow`` is what was too much. ``derived`` is what was worked out and still holds.
    """

    def __init__(
        self,
        catalogs: Mapping[str, Catalog],
        followers: Mapping[type, Follower],
        rule_cells: Iterable[type[RuleCell]] = (),
    ) -> None:
        self.catalogs = catalogs
        self.lookup = Lookup(Catalog(digest=""))
        self.rule_cells = tuple(rule_cells)
        self._keys = KEYS | {of: keys_of(of) for of in self.rule_cells}
        self._followers = followers
        self.cells: dict[type, dict[Key, Any]] = {each: {} for each in self._keys}
        self.now_ns = 0
        self.moment_ns = 0
        self.timers = Timers()

        self.names = Names()
        self.indexes = Indexes(self.lookup)
        self.on_device = Groups[tuple[type, str]]()
        self.parts_of = Groups[str]()
        self.awaited: dict[Key, None] = {}
        self.reaching: dict[Key, None] = {}
        self.pending: dict[Key, None] = {}
        self.suppressed = Groups[str]()
        self.live_jobs: dict[Key, Job] = {}
        self.in_place: frozenset[str] = frozenset()
        self.training: frozenset[str] = frozenset()
        self.derived = Derived()

        self.muted = False
        self.events: list[Event] = []
        self.actions: list[Action] = []
        self.answer: Answer | None = None
        self.dirty: dict[str, None] = {}
        self.unreviewed: dict[str, None] = {}
        self.overflow = ""

    # ------------------------------------------------------------------ change

    def put(self, cell: Cell) -> None:
        of = type(cell)
        key = self._keys[of](cell)
        cells = self.cells[of]
        before = cells.pop(key, None) if of in NEWEST_LAST else cells.get(key)
        cells[key] = cell
        follower = self._followers.get(of)
        if follower is not None:
            follower(self, key, before, cell)

    def drop(self, cell: Cell) -> None:
        of = type(cell)
        key = self._keys[of](cell)
        before = self.cells[of].pop(key)
        follower = self._followers.get(of)
        if follower is not None:
            follower(self, key, before, None)

    def mark(self, device_ids: Iterable[str]) -> None:
        for device_id in device_ids:
            self.dirty[device_id] = None
            self.unreviewed[device_id] = None
            self.derived.judgements.pop(device_id, None)
            self.mark(part.id for part in self.parts(device_id))

    def mark_reach(self, condition: Condition) -> None:
        self.mark((condition.device_id,))
        self.mark_affected(condition.grade.affects)

    def mark_affected(self, affects: Affects) -> None:
        if affects is Affects.NODE:
            self.mark((self.node_id,))
        elif affects is Affects.CHIPS_BEHIND:
            self.mark(device.id for device in self.cells[Device].values() if device.kind is Kind.CHIP)

    # ------------------------------------------------------------------ what is there

    def lookup_on(self, device_id: str) -> Lookup:
        """The lookup by which what is open on the device is judged."""
        if not (self.in_place or self.training) or (device := self.get(Device, device_id)) is None:
            return self.lookup
        chip_id = self.chip_of(device).id
        if chip_id in self.in_place:
            return self.lookup.gracefully
        return self.lookup.of_training if chip_id in self.training else self.lookup

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

    def same_fault(self, condition: Condition) -> Condition | None:
        """The condition, open before it, that is the same fault now; None where there is none."""
        key = self.indexes.open[self.indexes.place(condition)]
        other: Condition = self.cells[Condition][key]
        return None if other.id == condition.id else other

    def reported(self, report: Report) -> list[Condition]:
        """The conditions of that name, on any device and of any caller."""
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
        """True while the source has not been read (again): its timers are paused, nothing is judged."""
        if not self.awaited:
            return False
        cell = self.source_of(source, device_id)
        return cell is not None and cell.awaited
