"""Sequence numbers, what may be seen, and that a crash neither loses nor repeats an event."""

from collections.abc import Mapping, Sequence

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import Cell, Event, Outcome, Shown
from nodeagent.store.records import Publication, StoredEvent
from tests.simulation.history import Broken, Step, Turn
from tests.simulation.watch import Invariant


class SequenceWithoutGap(Invariant):
    name = "sequence numbers have no gap"

    def __init__(self) -> None:
        self._last = 0

    def on_turn(self, turn: Turn) -> None:
        for stored in turn.stored:
            if stored.seq != self._last + 1:
                raise Broken(self.name, f"{stored.seq} after {self._last}")
            self._last = stored.seq


class NothingVisibleBeforeDurable(Invariant):
    name = "nothing is visible before it is durable"

    def on_published(
        self, publication: Publication, events: tuple[StoredEvent, ...], durable_seq: int
    ) -> None:
        newest = max([publication.seq, *(event.seq for event in events)])
        if publication.durable and newest > durable_seq:
            raise Broken(self.name, f"{newest} was published, {durable_seq} is on the disk")


class NothingTwice(Invariant):
    """A second engine takes every stored input and is never stopped, replayed or compacted."""

    name = "an engine that never crashed emits the same"

    def __init__(self, catalogs: Mapping[str, Catalog]) -> None:
        self._uncrashed = Engine(catalogs)
        self._emitted: list[Event] = []

    def on_rebuilt(self, engine: Engine, differences: Outcome) -> None:
        if differences.events:
            raise Broken(self.name, f"rebuilt with a difference: {_words(differences.events)}")
        mine, others = _in_order(self._uncrashed), _in_order(engine)
        if mine != others:
            only_mine = [one for one in mine if one not in others]
            only_others = [one for one in others if one not in mine]
            found = f"{only_mine[:2]} became {only_others[:2]}" if only_mine or only_others else "their order"
            raise Broken(self.name, f"after a replay the cells differ: {found}")

    def on_step(self, step: Step) -> None:
        self._emitted += self._uncrashed.step(step.now_ns, step.given).events

    def on_turn(self, turn: Turn) -> None:
        emitted, self._emitted = self._emitted, []
        stored = [one.event for one in turn.stored]
        if emitted != stored:
            raise Broken(self.name, f"it emits {_words(emitted)}; stored was {_words(stored)}")


def _in_order(engine: Engine) -> list[Cell]:
    """The live cells as they would be put back; what was shown last is asked for by device only."""
    cells = [one.cell for one in engine.carry()]
    shown = sorted((one for one in cells if isinstance(one, Shown)), key=lambda one: one.device_id)
    return [one for one in cells if not isinstance(one, Shown)] + list(shown)


def _words(events: Sequence[Event]) -> str:
    return (
        "; ".join(f"{one.kind} {one.device} {one.code} {one.verdict} {one.why}" for one in events[:6])
        or "nothing"
    )
