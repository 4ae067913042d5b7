"""After a replay: compares what was published with the state, and emits each difference (``rebuilt``).

There should be none; where a defect or damage made one, a subscriber must not be left with it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nodeagent.core.judge.events import emit
from nodeagent.core.model import Carried, Condition, Device, Event, EventKind, Shown
from nodeagent.core.state import registry
from nodeagent.core.state.state import EngineState

REBUILT = "rebuilt"


@dataclass(slots=True)
class PublishedState:
    """The fold of stored events: conditions open by id, and what was last shown of each device by its id."""

    conditions: dict[str, Event | Condition] = field(default_factory=dict)
    shown: dict[str, Shown] = field(default_factory=dict)

    def add(self, events: Iterable[Event]) -> None:
        """Events published since, in order."""
        for event in events:
            if event.kind is EventKind.RAISED:
                self.conditions[event.condition_id] = event
            elif event.kind is EventKind.CLEARED:
                self.conditions.pop(event.condition_id, None)
            before = self.shown.get(event.device_id) or Shown(device_id=event.device_id)
            self.shown[event.device_id] = before.followed_by(event.verdict, event.handling, event.at_ns)


def published_by(carried: Iterable[Carried]) -> PublishedState:
    """What had been published at the last compaction, from its cells."""
    published = PublishedState()
    for cell in (one.cell for one in carried):
        if isinstance(cell, Condition):
            published.conditions[cell.id] = cell
        elif isinstance(cell, Shown):
            published.shown[cell.device_id] = cell
    return published


def reconcile(state: EngineState, published: PublishedState) -> int:
    """Emit every difference, and leave changed verdicts to be settled. Returns how many there were."""
    state.moment_ns = state.now_ns
    _show_as_published(state, published.shown)
    differences = 0
    for condition in list(state.all(Condition)):
        if condition.id not in published.conditions:
            emit(state, EventKind.RAISED, state.device(condition.device_id), about=condition, why=REBUILT)
            differences += 1
    for condition_id, before in published.conditions.items():
        if state.get(Condition, condition_id) is None:
            differences += _emit_cleared(state, condition_id, before)
    return differences


def _emit_cleared(state: EngineState, condition_id: str, before: Event | Condition) -> int:
    device = registry.find(state, before.device_id) or state.device(state.node_id)
    emit(
        state,
        EventKind.CLEARED,
        device,
        code=before.code,
        name=before.name,
        source=before.source,
        condition_id=condition_id,
        why=REBUILT,
    )
    return 1


def _show_as_published(state: EngineState, shown: Mapping[str, Shown]) -> None:
    """Take what subscribers saw last as the base from which changes of verdict are emitted."""
    for device in list(state.all(Device)):
        present = state.get(Shown, device.id)
        if device.id in shown:
            state.put(shown[device.id])
        elif present is not None:
            state.drop(present)
        state.mark((device.id,))
