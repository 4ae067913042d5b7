"""All that the engine remembers: cells by key, the indexes over them, and the timers that follow from them.

Putting a cell replaces its predecessor, moves its deadline and marks whose verdict may have changed.
Nothing here judges or tells.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from nodeagent.core import deadlines
from nodeagent.core.catalog import Catalog
from nodeagent.core.lookup import Lookup
from nodeagent.core.model import (
    NODE,
    Affects,
    Cell,
    Condition,
    Device,
    Era,
    Event,
    Held,
    Hold,
    Kind,
    Noticed,
    Ordinal,
    Promotion,
    Severity,
    Shown,
    Sighting,
    Source,
    Window,
)
from nodeagent.core.timers import Key, Timers

C = TypeVar("C", bound=Cell)

KEYS: dict[type[Cell], Callable[..., Key]] = {
    Device: lambda cell: ("device", cell.id),
    Condition: lambda cell: ("condition", cell.id),
    Ordinal: lambda cell: ("ordinal", cell.device_id, cell.key),
    Window: lambda cell: ("window", cell.device_id, cell.code, cell.rule),
    Promotion: lambda cell: ("promotion", cell.id),
    Sighting: lambda cell: ("sighting", cell.device_id, cell.code),
    Noticed: lambda cell: ("noticed", cell.device_id, cell.code),
    Hold: lambda cell: ("hold", cell.id),
    Severity: lambda cell: ("severity", cell.code),
    Held: lambda cell: ("held", cell.device_id),
    Source: lambda cell: ("source", cell.name, cell.device_id),
    Shown: lambda cell: ("shown", cell.device_id),
    Era: lambda _: ("era",),
}


class State:
    """``catalogs`` is the shell's: every digest that an input may name must be in it before that input."""

    def __init__(self, catalogs: Mapping[str, Catalog]) -> None:
        self.catalogs = catalogs
        self.lookup = Lookup(Catalog(digest=""))
        self.now_ns = 0
        self.moment_ns = 0
        self.muted = False
        self.events: list[Event] = []
        self.timers = Timers()
        self.cells: dict[type, dict[Key, Cell]] = {of: {} for of in KEYS}
        self.dirty: dict[str, None] = {}
        self.names: dict[str, str] = {}
        self.by_pci: dict[str, str] = {}
        self.open: dict[tuple[str, str, bool], str] = {}
        self.on_device: dict[str, dict[Key, Condition | Promotion | Hold]] = {}
        self.reaching: dict[str, Condition] = {}

    # ------------------------------------------------------------------ cells

    def get(self, of: type[C], *key: str) -> C | None:
        cell = self.cells[of].get((of.__name__.lower(), *key))
        return cell if isinstance(cell, of) else None

    def all(self, of: type[C]) -> Iterator[C]:
        """Every cell of a type, in the order they came; a copy, so the caller may put and drop."""
        yield from [cell for cell in self.cells[of].values() if isinstance(cell, of)]

    def about(self, device_id: str) -> list[Any]:
        """Every cell, of any type, that is keyed by the device but is not the device."""
        return [
            cell
            for cells in self.cells.values()
            for cell in cells.values()
            if getattr(cell, "device_id", None) == device_id
        ]

    def put(self, cell: Cell) -> None:
        key = KEYS[type(cell)](cell)
        before = self.cells[type(cell)].get(key)
        if before is not None:
            self._unindex(key, before)
        self.cells[type(cell)][key] = cell
        self._index(key, cell)
        self._arm(key, cell)

    def drop(self, cell: Cell) -> None:
        key = KEYS[type(cell)](cell)
        before = self.cells[type(cell)].pop(key)
        self._unindex(key, before)
        self.timers.set(key, None)

    def _index(self, key: Key, cell: Cell) -> None:
        match cell:
            case Condition():
                self.open[cell.device_id, cell.code, cell.injected] = cell.id
                self.on_device.setdefault(cell.device_id, {})[key] = cell
                if cell.affects is not Affects.SELF:
                    self.reaching[cell.id] = cell
                self._mark_reach(cell)
            case Promotion() | Hold():
                self.on_device.setdefault(cell.device_id, {})[key] = cell
                self.dirty[cell.device_id] = None
            case Device():
                if cell.name:
                    self.names[cell.name] = cell.id
                if pci := cell.attributes.get("pci"):
                    self.by_pci[pci] = cell.id
                self.dirty[cell.id] = None
            case Source():
                self.mark(device.id for device in self.all(Device) if device.source == cell.name)
                self.dirty[self.node_id] = None
            case Era():
                self.lookup = Lookup(self.catalogs[cell.digest]) if cell.digest else self.lookup
            case _:
                pass

    def _unindex(self, key: Key, cell: Cell) -> None:
        match cell:
            case Condition():
                self.open.pop((cell.device_id, cell.code, cell.injected), None)
                self.on_device[cell.device_id].pop(key, None)
                self.reaching.pop(cell.id, None)
                self._mark_reach(cell)
            case Promotion() | Hold():
                self.on_device[cell.device_id].pop(key, None)
                self.dirty[cell.device_id] = None
            case Device():
                if self.names.get(cell.name) == cell.id:
                    del self.names[cell.name]
                if self.by_pci.get(cell.attributes.get("pci", "")) == cell.id:
                    del self.by_pci[cell.attributes["pci"]]
            case _:
                pass

    # ------------------------------------------------------------------ what follows from a cell

    def _arm(self, key: Key, cell: Cell) -> None:
        match cell:
            case Condition():
                held = self.awaits(cell.source, cell.device_id)
                self.timers.set(key, None if held else deadlines.of_condition(self.lookup, cell))
            case Promotion():
                held = self.awaits(cell.source, cell.device_id)
                self.timers.set(key, None if held else deadlines.of_promotion(self.lookup, cell))
            case Source():
                self.timers.set(key, deadlines.of_source(self.lookup, cell))
            case Hold():
                self.timers.set(key, deadlines.of_hold(cell))
            case _:
                pass

    def rearm(self) -> None:
        """After a source or the catalog changed: every deadline anew from its cell."""
        for of in (Condition, Promotion, Source):
            for key, cell in self.cells[of].items():
                self._arm(key, cell)

    def mark(self, device_ids: Iterable[str]) -> None:
        self.dirty.update(dict.fromkeys(device_ids))

    def _mark_reach(self, condition: Condition) -> None:
        self.dirty[condition.device_id] = None
        if condition.affects is Affects.NODE:
            self.dirty[self.node_id] = None
        elif condition.affects is Affects.CHIPS_BEHIND:
            self.mark(device.id for device in self.all(Device) if device.kind is Kind.CHIP)

    # ------------------------------------------------------------------ questions

    @property
    def node_id(self) -> str:
        return self.names.get(NODE, f"slot:{NODE}")

    @property
    def era(self) -> Era:
        return self.get(Era) or Era(boot_id="", started_ns=0, digest="")

    def device(self, device_id: str) -> Device:
        device = self.get(Device, device_id)
        assert device is not None, f"no device {device_id}"
        return device

    def condition(self, device_id: str, code: str, injected: bool = False) -> Condition | None:
        condition_id = self.open.get((device_id, code, injected))
        return None if condition_id is None else self.get(Condition, condition_id)

    def conditions_on(self, device_id: str) -> list[Condition]:
        return [cell for cell in self.on_device.get(device_id, {}).values() if isinstance(cell, Condition)]

    def promotions_on(self, device_id: str) -> list[Promotion]:
        return [cell for cell in self.on_device.get(device_id, {}).values() if isinstance(cell, Promotion)]

    def source_of(self, name: str, device_id: str) -> Source | None:
        """What is known of the source's view of a device: its own cell, else that of the whole source."""
        return self.get(Source, name, device_id) or self.get(Source, name, "")

    def awaits(self, source: str, device_id: str) -> bool:
        """True while the source has not been read (again): its timers are held, nothing is judged."""
        cell = self.source_of(source, device_id)
        return cell is not None and cell.awaited

    def next_ordinal(self, device_id: str, key: str) -> int:
        """Takes the next number for a condition or promotion: ids are never reused."""
        cell = self.get(Ordinal, device_id, key)
        last = (cell.last if cell else 0) + 1
        self.put(Ordinal(device_id=device_id, key=key, last=last))
        return last
