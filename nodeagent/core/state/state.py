"""What the state is asked: its cells by key, and what the indexes over them answer. It changes nothing.

Whose verdict, or whose reset, may be another after a change: devices that are to be looked at again.

It marks them, and looks at nothing itself.

All that the engine remembers, and what follows from its change: indexes, timers, what to judge anew.

Putting a cell replaces its predecessor, moves its deadline and marks whose verdict may have changed.
Everything here is a function of the cells and their order, so putting them back restores everything.
Nothing here judges or emits.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.levels import RESET_LEVELS, Contribution, Judgement
from nodeagent.core.catalog.lookup import Lookup
from nodeagent.core.model import (
    NODE,
    Action,
    Affects,
    Answer,
    Cell,
    Claimed,
    Condition,
    Device,
    Era,
    Event,
    Hold,
    Job,
    JobStage,
    JobView,
    Kind,
    Promotion,
    Report,
    Reset,
    RuleCell,
    Sighting,
    Source,
    Trace,
)
from nodeagent.core.state import deadlines, job_chips
from nodeagent.core.state.cell_keys import (
    KEYS,
    NEWEST_LAST,
    TAGS,
    Key,
    judged_alike,
    keys_of,
    restarts_anew,
    shown_alike,
    weighed_alike,
)
from nodeagent.core.state.indexes import Coded, Groups, Indexes
from nodeagent.core.state.names import Names
from nodeagent.core.state.timers import Timers

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


class Marks(Queries):
    """``dirty`` are those whose verdict is to be worked out and shown anew, ``unreviewed`` those of which the
    policy of resets and jobs has to hear; ``judged`` is what was worked out and still holds.
    """

    def __init__(self, of: Iterable[type]) -> None:
        super().__init__(of)
        self.dirty: dict[str, None] = {}
        self.unreviewed: dict[str, None] = {}
        self.judged: dict[str, Judgement] = {}

    def mark(self, device_ids: Iterable[str]) -> None:
        for device_id in device_ids:
            self.dirty[device_id] = None
            self.unreviewed[device_id] = None
            self.judged.pop(device_id, None)
            self.mark(part.id for part in self.parts(device_id))

    def mark_reach(self, condition: Condition) -> None:
        self.mark((condition.device_id,))
        self.mark_affected(condition.affects)

    def mark_affected(self, affects: Affects) -> None:
        if affects is Affects.NODE:
            self.mark((self.node_id,))
        elif affects is Affects.CHIPS_BEHIND:
            self.mark(device.id for device in self.cells[Device].values() if device.kind is Kind.CHIP)


Timed = Condition | Promotion | RuleCell
OnDevice = Condition | Promotion | Hold


class ClaimedJob(NamedTuple):
    """A job that only claims devices, as it was shown, and what that follows from."""

    kind: str
    devices: tuple[str, ...]
    judged: tuple[Judgement, ...]
    view: JobView


class State(Marks):
    """``catalogs`` is the shell's: every digest that an input may name must be in it before that input.

    ``rule_cells`` are the types of cells that kinds of rules bring.
    """

    def __init__(self, catalogs: Mapping[str, Catalog], rule_cells: Iterable[type[RuleCell]] = ()) -> None:
        self.rule_cells = tuple(rule_cells)
        self._keys = KEYS | {of: keys_of(of) for of in self.rule_cells}
        super().__init__(self._keys)
        self.catalogs = catalogs
        self.now_ns = 0
        self.moment_ns = 0
        self.muted = False
        self.overflow = ""
        self.events: list[Event] = []
        self.timers = Timers()
        self._timed: dict[type, Callable[[Lookup, Any], int | None]] = {
            Condition: deadlines.of_condition,
            Promotion: deadlines.of_promotion,
            **dict.fromkeys(self.rule_cells, deadlines.of_rule_cell),
        }
        self.actions: list[Action] = []
        self.answer: Answer | None = None
        self.reaching: dict[Key, None] = {}
        self.pending: dict[Key, None] = {}
        self.suppressed = Groups[str]()
        self.said: dict[Key, Contribution] = {}
        self.ended_jobs: dict[str, JobView] = {}
        self.claimed_jobs: dict[str, ClaimedJob] = {}
        self._follow: dict[type, Callable[[Key, Any, Any], None]] = {
            Condition: self._follow_condition,
            Promotion: self._follow_promotion,
            Hold: self._follow_hold,
            Reset: self._follow_reset,
            Job: self._follow_job,
            Claimed: self._follow_claimed,
            Sighting: self._follow_sighting,
            Trace: self._index,
            Device: self._follow_device,
            Source: self._follow_source,
            Era: self._follow_era,
            **dict.fromkeys(self.rule_cells, self._follow_timed),
        }

    # ------------------------------------------------------------------ cells

    def put(self, cell: Cell) -> None:
        of = type(cell)
        key = self._keys[of](cell)
        cells = self.cells[of]
        before = cells.pop(key, None) if of in NEWEST_LAST else cells.get(key)
        cells[key] = cell
        follow = self._follow.get(of)
        if follow is not None:
            follow(key, before, cell)

    def drop(self, cell: Cell) -> None:
        of = type(cell)
        key = self._keys[of](cell)
        before = self.cells[of].pop(key)
        follow = self._follow.get(of)
        if follow is not None:
            follow(key, before, None)

    # ------------------------------------------------------------------ what follows from a change of a cell

    def _follow_condition(self, key: Key, before: Condition | None, after: Condition | None) -> None:
        if before is None or after is None:
            self._index(key, before, after)
            self._group(key, before, after)
        elif judged_alike(before, after):
            may_ask = after.level in RESET_LEVELS and self._may_ask_now(before, after)
            if may_ask or (self.cells[Job] and restarts_anew(before, after)):
                self.unreviewed[after.device_id] = None
            self._arm(key, after)
            return
        self.said.pop(key, None)
        for cell in (before, after):
            if cell is not None:
                self.mark_reach(cell)
        if after is None or after.affects is Affects.SELF:
            self.reaching.pop(key, None)
        else:
            self.reaching[key] = None
        self._arm(key, after)

    def _may_ask_now(self, before: Condition, after: Condition) -> bool:
        """Whether it may ask for a reset for which it did not ask before: what continues is not weighed."""
        era = self.era
        return before.heard_ns <= max(era.started_ns, era.catalog_ns) or not shown_alike(before, after)

    def _follow_promotion(self, key: Key, before: Promotion | None, after: Promotion | None) -> None:
        self._arm(key, after)
        if before is not None and after is not None and weighed_alike(before, after):
            return
        self.said.pop(key, None)
        if after is None or after.effective:
            self.pending.pop(key, None)
        else:
            self.pending[key] = None
        affects = self.indexes.reaching.get(key)
        self._index(key, before, after)
        affects = self.indexes.reaching.get(key, affects)
        self._follow_on_device(key, before, after)
        if affects is not None:
            self.mark_affected(affects)

    def _follow_hold(self, key: Key, before: Hold | None, after: Hold | None) -> None:
        self.said.pop(key, None)
        self._follow_on_device(key, before, after)
        self.timers.set(key, None if after is None else deadlines.of_hold(after))

    def _follow_reset(self, key: Key, _: Reset | None, after: Reset | None) -> None:
        self.timers.set(key, None if after is None else after.due_ns)
        if after is not None:
            self.unreviewed[after.asker_id] = None

    def _follow_job(self, key: Key, before: Job | None, after: Job | None) -> None:
        """Whatever waits for one of its chips looks again; which these are, claims say too."""
        self.timers.set(key, None if after is None else after.due_ns)
        if after is None or after.stage is JobStage.ENDED:
            self.live_jobs.pop(key, None)
        else:
            self.live_jobs[key] = after
        if not _use_alike(before, after):
            self.uses = Uses()
        self.ended_jobs.pop(key[1], None)
        self.unreviewed.update(dict.fromkeys(device.id for device in self.cells[Device].values()))
        self._judge_by_jobs()

    def _follow_claimed(self, _: Key, __: Claimed | None, ___: Claimed | None) -> None:
        if self.live_jobs:
            self.uses = Uses()
        self._judge_by_jobs()

    def _judge_by_jobs(self) -> None:
        """Where the configuration wants it, chips that only jobs use which may be run again in place are
        judged as in mode graceful: their faults say something else, and at other times.
        """
        before = self.in_place
        if not self.in_place and not self.lookup.settings.jobs.in_place_registered:
            return
        wanted = self.lookup.settings.jobs.in_place_registered
        self.in_place = job_chips.in_place(self) if wanted else frozenset()
        for chip_id in sorted(before ^ self.in_place):
            if (chip := self.get(Device, chip_id)) is None:
                continue
            for device in (chip, *self.parts(chip_id)):
                for condition in self.on(Condition, device.id):
                    self._judge_anew(condition)
                for promotion in self.on(Promotion, device.id):
                    self._judge_anew(promotion)
            self.mark((chip_id,))

    def _judge_anew(self, cell: deadlines.Timed) -> None:
        """It is as far on as it would be, and nothing falls due in the past."""
        after = cell
        if not self.awaits(cell.source, cell.device_id):
            after = deadlines.in_its_phase(self.lookup_on(cell.device_id), cell, self.moment_ns)
        key = self._keys[type(cell)](cell)
        if after != cell:
            self.put(after)
        self.said.pop(key, None)
        self._arm(key, after)

    def _follow_sighting(self, key: Key, before: Sighting | None, after: Sighting | None) -> None:
        if after is not None and after.suppressed_ns is not None:
            self.suppressed.add(after.code, key)
        elif before is not None and before.suppressed_ns is not None:
            self.suppressed.remove(before.code, key)

    def _follow_timed(self, key: Key, _: Timed | None, after: Timed | None) -> None:
        self._arm(key, after)

    def _follow_on_device(
        self, key: Key, before: Promotion | Hold | None, after: Promotion | Hold | None
    ) -> None:
        self._group(key, before, after)
        self.mark(cell.device_id for cell in (before, after) if cell is not None)

    def _group(self, key: Key, before: OnDevice | None, after: OnDevice | None) -> None:
        if before is None and after is not None:
            self.on_device.add((type(after), after.device_id), key)
        elif before is not None and after is None:
            self.on_device.remove((type(before), before.device_id), key)

    def _follow_device(self, key: Key, before: Device | None, after: Device | None) -> None:
        if self.live_jobs:
            self.uses = Uses()
        if before is not None:
            self.names.remove(before)
            self.mark((before.id,))
            if chip_id := before.attributes.get(PART_OF):
                self.parts_of.remove(chip_id, key)
        if after is not None:
            self.names.add(after)
            if chip_id := after.attributes.get(PART_OF):
                self.parts_of.add(chip_id, key)
            self.mark((after.id,))
            if before is None or before.attributes != after.attributes:
                for each in (after, *self.parts(after.id)):
                    for said in self.on_device.get((Condition, each.id), ()):
                        self.said.pop(said, None)
            for reaching in self.reaching:
                if self.cells[Condition][reaching].device_id == after.id:
                    self.mark_reach(self.cells[Condition][reaching])
            for reaching, affects in self.indexes.reaching.items():
                if self.cells[Promotion][reaching].device_id == after.id:
                    self.mark_affected(affects)

        if before is None or after is None:
            self._judge_by_jobs()

    def _follow_source(self, key: Key, before: Source | None, after: Source | None) -> None:
        name = (after or before or Source(name="")).name
        self.mark(device.id for device in self.cells[Device].values() if device.source == name)
        self.mark((self.node_id,))
        if after is not None and after.awaited:
            self.awaited[key] = None
        else:
            self.awaited.pop(key, None)
        self.timers.set(key, None if after is None else deadlines.of_source(self.lookup, after))

    def _follow_era(self, _: Key, before: Era | None, after: Era | None) -> None:
        if after is not None and after.digest and (before is None or before.digest != after.digest):
            self.lookup = Lookup(self.catalogs[after.digest])
            self.said.clear()
            self._index_anew()
            self._judge_by_jobs()
        self.mark(device.id for device in self.cells[Device].values())

    def _index(self, key: Key, before: Coded | None, after: Coded | None) -> None:
        if before is None and after is not None:
            self.indexes.add(key, after)
        elif before is not None and after is None:
            self.indexes.remove(key, before)

    def _index_anew(self) -> None:
        self.indexes = Indexes(self.lookup)
        for of in (Condition, Promotion, Trace):
            for key, cell in self.cells[of].items():
                self.indexes.add(key, cell)

    # ------------------------------------------------------------------ timers

    def _arm(self, key: Key, cell: Timed | None, not_before_ns: int = 0) -> None:
        """Its time stands still while its source does not observe; only an injected one's runs on."""
        at_ns = None
        if cell is not None and (not self.awaits(cell.source, cell.device_id) or _is_injected(cell)):
            at_ns = self._timed[type(cell)](self.lookup_on(cell.device_id), cell)
        self.timers.set(key, None if at_ns is None else max(at_ns, not_before_ns))

    def rearm(self, not_before_ns: int = 0) -> None:
        """After a source or the catalog changed: every deadline anew from its cell."""
        for of in self._timed:
            for key, cell in self.cells[of].items():
                self._arm(key, cell, not_before_ns)
        for key, source in self.cells[Source].items():
            self.timers.set(key, deadlines.of_source(self.lookup, source))


def _use_alike(before: Job | None, after: Job | None) -> bool:
    """Whether both are live, or neither is, and name the same devices."""
    if before is None or after is None:
        return False
    is_ended = before.stage is JobStage.ENDED
    return is_ended is (after.stage is JobStage.ENDED) and before.devices == after.devices


def _is_injected(cell: Timed) -> bool:
    return isinstance(cell, Condition) and cell.injected
