"""After damage: what subscribers saw open stays open, until a driver or a person ends it.

From what is left of the cells and the events it works out which isolations, promotions and faults are
missing, and makes what is left fit to be put back. It puts nothing back itself, and is asked only where
something was lost. No event shows whether a driver had confirmed a line of the kernel: such a fault comes
back as confirmed, since a person looks after damage in any case.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from nodeagent.core.catalog.codes import canonical
from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.faults import reported
from nodeagent.core.machines import holds, reset_proposals
from nodeagent.core.model import (
    Backing,
    Carried,
    Cell,
    Condition,
    Device,
    Event,
    EventKind,
    Grade,
    Hold,
    HoldKind,
    Job,
    Kind,
    Level,
    Ordinal,
    Origin,
    Presence,
    Promotion,
    Reset,
)
from nodeagent.core.state import limits

Restorable = Hold | Promotion | Condition

_OF_CONDITIONS = frozenset({EventKind.RAISED, EventKind.LEVEL_CHANGED, EventKind.NOTICE})
"""A notice with the id of a condition adds to its evidence; most have none, and open nothing."""

_ENDS = frozenset({EventKind.CLEARED, EventKind.RELEASED, EventKind.RESUMED})


class History:
    """What is open by the events, one page of them after the other. ``doubtful`` are cells of which only
    they show whether they are still open.
    """

    def __init__(self, doubtful: Iterable[Carried]) -> None:
        self._open: dict[str, Restorable] = {
            one.cell.id: one.cell for one in doubtful if isinstance(one.cell, Hold | Promotion | Condition)
        }

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.kind in _ENDS:
                self._open.pop(event.condition_id, None)
            elif (cell := _described(event)) is not None:
                self._open[cell.id] = cell

    def missing(self, carried: Iterable[Carried]) -> tuple[Restorable, ...]:
        """What keeps work off a device, is open, and is none of these cells."""
        there, resets = set(), set()
        for cell in (one.cell for one in carried):
            if isinstance(cell, Hold | Promotion | Condition):
                there.add(cell.id)
            elif isinstance(cell, Reset) and not cell.has_ended:
                resets.add(cell.id)
        absent = (cell for cell in self._open.values() if cell.id not in there)
        return tuple(cell for cell in absent if _keeps_work_off(cell) and not _waits_in_vain(cell, resets))


def fit(carried: Iterable[Carried], restored: Iterable[Restorable] = ()) -> tuple[Carried, ...]:
    """All of it, in an order in which it can be put back: what belongs to a device that is lost has one of
    its name, what waits for a reset that is lost goes, and no number in an id is given again.
    """
    cells = [*(one.cell for one in carried), *restored]
    known = {cell.id for cell in cells if isinstance(cell, Device)}
    resets = {cell.id for cell in cells if isinstance(cell, Reset)}
    kept = [cell for cell in cells if not _waits_in_vain(cell, resets)]
    devices = [Carried(cell=device) for device in _devices_of(kept, known)]
    numbers = [Carried(cell=ordinal) for ordinal in _ordinals_of(kept)]
    return (*devices, *(Carried(cell=cell) for cell in kept), *numbers)


def _devices_of(cells: Iterable[Cell], known: Collection[str]) -> Iterator[Device]:
    wanted = dict.fromkeys(
        device_id
        for cell in cells
        if not isinstance(cell, Job)
        for device_id in (getattr(cell, "device_id", ""), *(cell.members if isinstance(cell, Reset) else ()))
    )
    for device_id in wanted:
        if device_id and device_id not in known:
            yield Device(id=device_id, name=device_id, kind=Kind.CHIP, vendor="", source="")


def _ordinals_of(cells: Iterable[Cell]) -> Iterator[Ordinal]:
    """Those that are lost, or are behind what they have numbered."""
    known = {(cell.device_id, cell.key): cell for cell in cells if isinstance(cell, Ordinal)}
    behind: dict[tuple[str, str], Ordinal] = {}
    for cell in cells:
        if not isinstance(cell, Hold | Promotion | Condition):
            continue
        name, _, number = cell.id.removeprefix(f"{cell.device_id}/").rpartition("#")
        place = cell.device_id, _numbered_under(cell, name)
        before = behind.get(place) or known.get(place) or Ordinal(device_id=place[0], key=place[1], last=0)
        if name and number.isdecimal() and int(number) > before.last:
            behind[place] = replace(before, last=int(number))
    yield from behind.values()


def _numbered_under(cell: Restorable, name: str) -> str:
    if isinstance(cell, Promotion):
        return limits.number_of_rule(cell.rule)
    return (
        limits.number_of_code(canonical(cell.code), cell.origin.injected)
        if isinstance(cell, Condition)
        else name
    )


def _waits_in_vain(cell: Cell, resets: Collection[str]) -> bool:
    if not isinstance(cell, Hold) or cell.kind is not HoldKind.RESET_PENDING:
        return False
    return reset_proposals.reset_of(cell.id) not in resets


def _keeps_work_off(cell: Restorable) -> bool:
    return isinstance(cell, Hold) or PRECEDENCE[cell.level] > PRECEDENCE[Level.SUB_HEALTH]


def _described(event: Event) -> Restorable | None:
    """The cell that the event is about, as far as the event shows it."""
    if event.kind is EventKind.ISOLATED or (event.kind is EventKind.QUIESCED and holds.states_end(event)):
        return _hold(event)
    if event.condition_level is None:
        return None
    if event.kind is EventKind.PROMOTED:
        return Promotion(
            id=event.condition_id,
            device_id=event.device_id,
            rule=event.rule,
            code=event.code,
            name=event.name,
            source=event.source,
            level=event.condition_level,
            fired_ns=event.at_ns,
            effective=True,
            level_since_ns=event.at_ns,
        )
    if event.kind in _OF_CONDITIONS and event.condition_id and not event.injected:
        return _condition(event, event.condition_level)
    return None


def _hold(event: Event) -> Hold:
    """One without a stated end has none. Such a quiesce is not put back: the node would stay blind."""
    kind = HoldKind.QUIESCE if event.kind is EventKind.QUIESCED else HoldKind.ISOLATION
    owner, set_by, reason = holds.owner_in(event.why)
    if reset_proposals.is_of_reset(event.condition_id):
        kind = HoldKind.RESET_PENDING
        owner, set_by, reason = reset_proposals.OWNER, "", event.why
    return Hold(
        id=event.condition_id,
        device_id=event.device_id,
        owner=owner,
        reason=reason,
        since_ns=event.at_ns,
        until_ns=holds.end_in(event),
        kind=kind,
        set_by=set_by,
    )


def _condition(event: Event, level: Level) -> Condition:
    return Condition(
        id=event.condition_id,
        device_id=event.device_id,
        code=event.code,
        name=event.name,
        source=event.source,
        presence=Presence(opened_ns=event.at_ns, last_ns=event.at_ns, occurred_ns=event.at_ns),
        grade=Grade(
            base_level=level,
            level=level,
            level_since_ns=event.at_ns,
            user_induced=event.user_induced,
            unknown=event.unknown,
        ),
        backing=Backing(evidence=event.evidence),
        origin=Origin(report=reported.named_in(event), reported_ns=event.at_ns),
    )
