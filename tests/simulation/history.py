"""What a simulated node did, as its watchers see it: steps of the engine, gathered into committed turns."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import Carried, Event, Input, Outcome, ResetStage, Started, Tick, View, Wanted
from nodeagent.core.preview import Preview
from nodeagent.store.records import StoredEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the engine. ``before`` and ``after`` are its views, ``catalog`` what judged."""

    true_ns: int
    now_ns: int
    given: Input
    events: tuple[Event, ...]
    before: View
    after: View
    catalog: Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One committed transaction."""

    steps: tuple[Step, ...]
    stored: tuple[StoredEvent, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One of the attempts of an action: what has a process, a lock and a result of its own."""

    action_id: str
    number: int


@dataclass(frozen=True, slots=True)
class HardwareReset:
    """What truly happened to these parts (their ids)."""

    attempt: Attempt
    identities: tuple[str, ...]
    true_ns: int
    rule_ns: int


NOT_DURABLE = "the store is not durable"
"""Why the shell does not do what it cannot remember."""


class Broken(Exception):
    """An invariant does not hold; str() is ``NAME: what was found``."""

    def __init__(self, invariant: str, found: str) -> None:
        super().__init__(f"{invariant}: {found}")
        self.invariant = invariant


class Observed:
    """In place of the engine in the pump: the same, with every step written down.

    Deadlines that are due are fired by a step of their own before the input, which is the same thing:
    so a watcher can distinguish what time brought about from what the input did.
    """

    def __init__(self, engine: Engine, known: dict[str, Catalog], true_ns: Callable[[], int]) -> None:
        self.engine = engine
        self.steps: list[Step] = []
        self._known = known
        self._true_ns = true_ns
        self._view = engine.view()

    @property
    def now_ns(self) -> int:
        return self.engine.now_ns

    @property
    def digest(self) -> str:
        return self.engine.digest

    def step(self, now_ns: int, given: Input) -> Outcome:
        due = Outcome()
        if not isinstance(given, Started | Tick) and self._is_due(now_ns):
            due = self._step(now_ns, Tick())
        outcome = self._step(now_ns, given)
        actions = due.actions + outcome.actions
        return replace(outcome, events=due.events + outcome.events, actions=actions)

    def in_progress(self) -> tuple[str, ...]:
        """The ids of the resets that have not ended."""
        return tuple(one.id for one in self._view.resets if one.stage is not ResetStage.ENDED)

    def wanted(self) -> dict[str, tuple[Wanted, int, int]]:
        """What is wanted of each supervised job, for which run, and how much of what it said is taken."""
        return {
            job.name: (job.wanted, job.run, job.said) for job in self._view.jobs if job.wanted is not None
        }

    def _is_due(self, now_ns: int) -> bool:
        deadline_ns = self.engine.next_deadline()
        return deadline_ns is not None and deadline_ns <= now_ns

    def _step(self, now_ns: int, given: Input) -> Outcome:
        is_due = self._is_due(now_ns)
        outcome = self.engine.step(now_ns, given)
        before = self._view
        if is_due or outcome.records or outcome.events:
            self._view = self.engine.view()
        catalog = self._known.get(self.engine.digest) or Catalog(digest="")
        self.steps.append(
            Step(
                true_ns=self._true_ns(),
                now_ns=now_ns,
                given=outcome.records[0] if outcome.records else given,
                events=outcome.events,
                before=before,
                after=self._view,
                catalog=catalog,
            )
        )
        return outcome

    def next_deadline(self) -> int | None:
        return self.engine.next_deadline()

    def carry(self) -> tuple[Carried, ...]:
        return self.engine.carry()

    def view(self) -> View:
        """The last step's own, if no time has passed since: what changed nothing shows nothing new."""
        return self._view if self._view.now_ns == self.engine.now_ns else self.engine.view()

    def preview(self, catalog: Catalog) -> Preview:
        return self.engine.preview(catalog)
