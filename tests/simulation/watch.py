"""Those who look on: every invariant hears of every turn, publication and start. Nobody here acts."""

from collections.abc import Sequence

from nodeagent.core.engine import Engine
from nodeagent.core.model import ActionResult, Outcome
from nodeagent.store.records import Publication, StoredEvent
from tests.simulation.history import Attempt, HardwareReset, Step, Turn
from tests.simulation.world import World


class Invariant:
    """What must hold. ``name`` is a sentence; a subclass says in ``on_*`` when it looks; it raises Broken."""

    name = ""

    def on_start(self, world: World) -> None:
        """A process begins to step."""

    def on_rebuilt(self, engine: Engine, differences: Outcome) -> None:
        """A replay has ended; ``differences`` is what it found to emit anew."""

    def on_turn(self, turn: Turn) -> None:
        """A transaction is on the disk."""

    def on_step(self, step: Step) -> None:
        """One step of a turn that is on the disk."""

    def on_anchor(self, world: World) -> None:
        """The relation of the clocks was written."""

    def on_published(
        self, publication: Publication, events: tuple[StoredEvent, ...], durable_seq: int
    ) -> None:
        """Something became visible."""

    def on_reset(self, reset: HardwareReset) -> None:
        """Hardware was truly reset."""

    def on_ended(self, attempt: Attempt, result: ActionResult) -> None:
        """The process of an attempt has ended, or is found to be gone."""

    def on_rest(self, engine: Engine, queued: int) -> None:
        """A turn is over and the shell waits."""

    def on_end(self, engine: Engine, world: World) -> None:
        """The simulation is over; everything had time to end."""


class Watch:
    def __init__(self, invariants: Sequence[Invariant], world: World) -> None:
        self._invariants = invariants
        self._of_steps = [one.on_step for one in invariants if _looks(one, "on_step")]
        self._of_turns = [one for one in invariants if _looks(one, "on_turn") or _looks(one, "on_anchor")]
        self._of_rests = [one.on_rest for one in invariants if _looks(one, "on_rest")]
        self._world = world
        self.turns = 0

    def starts(self) -> None:
        for one in self._invariants:
            one.on_start(self._world)

    def rebuilt(self, engine: Engine, differences: Outcome) -> None:
        for one in self._invariants:
            one.on_rebuilt(engine, differences)

    def committed(self, turn: Turn) -> None:
        self.turns += 1
        for step in turn.steps:
            for looks in self._of_steps:
                looks(step)
        for one in self._of_turns:
            one.on_turn(turn)
            one.on_anchor(self._world)

    def published(self, publication: Publication, events: tuple[StoredEvent, ...], durable_seq: int) -> None:
        for one in self._invariants:
            one.on_published(publication, events, durable_seq)

    def reset(self, reset: HardwareReset) -> None:
        for one in self._invariants:
            one.on_reset(reset)

    def attempt_ended(self, attempt: Attempt, result: ActionResult) -> None:
        for one in self._invariants:
            one.on_ended(attempt, result)

    def rests(self, engine: Engine, queued: int) -> None:
        for looks in self._of_rests:
            looks(engine, queued)

    def ended(self, engine: Engine) -> None:
        for one in self._invariants:
            one.on_end(engine, self._world)


def _looks(invariant: Invariant, when: str) -> bool:
    """Whether it looks at all then: most look at few of the many steps, turns and rests."""
    return getattr(type(invariant), when) is not getattr(Invariant, when)
