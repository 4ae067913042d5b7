"""The pump: deliveries in, the core stepped, one commit, then published. The only user of the engine.

One turn takes what has arrived (bounded), steps it in order, writes records and events in one
transaction, and only then publishes them. Nothing is visible before it is durable, or before the store
reported that it cannot be.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.machines.reset_refusal import DryRun
from nodeagent.core.model import AGENT, Action, Answer, Assertion, Event, Input, Outcome, Signal, Tick, View
from nodeagent.core.preview import Preview
from nodeagent.daemon.clock import Clock
from nodeagent.daemon.sources.translate import store_damaged
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Committed, Cursor, Damage, Publication, Stamped, Taken, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """``inputs`` in order; everything up to ``cursor`` is accounted for by this and earlier deliveries.

    ``answer`` gets what became of them, when that is committed and published.
    """

    source: str
    inputs: tuple[Input, ...] = ()
    cursor: Cursor | None = None
    answer: asyncio.Future[Taken] | None = None


QUEUE_DELIVERIES = 1024
MAX_INPUTS_A_TURN = 2048
HEARTBEAT_S = 5.0
LATEST_BEAT_S = 6.0
"""While sources are polled each second, the heartbeat goes with their turn and costs no wake-up of its own.
"""
SHORTEST_BEAT_S = 1.0
"""A busy pump notifies the watchdog no more often than this: one call costs as much as a small turn."""

COMPACT_EVERY_S = 3600.0
COMPACT_BEYOND_INPUTS = 20_000
"""So many inputs replay in well under a second: what bounds the time of a start after a storm."""


def _no_actuator(_action: Action, _durable: bool) -> None:
    """Before the actuator is set nothing is confirmed in this life, so there is nothing to do."""


class RestartNeeded(Exception):
    """This process began without the state that the store now shows: the next one can load it."""


@dataclass(slots=True)
class PumpStatistics:
    """What the metrics show of the pump: counts since start, seconds."""

    inputs: int = 0
    events: int = 0
    commit_last_s: float = 0.0
    commit_total_s: float = 0.0
    commits: int = 0


@dataclass(slots=True)
class _Turn:
    """What one turn has gathered for its commit."""

    inputs: list[Stamped] = field(default_factory=list)
    events: list[tuple[int, Event]] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    reports_damage: bool = False
    taken: list[tuple[asyncio.Future[Taken], Taken]] = field(default_factory=list)


class Pump:
    """``beat`` is called only after a turn whose commit was answered: that is what the watchdog waits for."""

    def __init__(
        self, engine: Engine, ledger: Ledger, feed: EventFeed, clock: Clock, beat: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._ledger = ledger
        self._feed = feed
        self._clock = clock
        self._beat = beat
        self._queue: deque[Delivery] = deque()
        self._room = asyncio.Semaphore(QUEUE_DELIVERIES)
        self._woken = asyncio.Event()
        self._finishing = False
        self._reported_degraded: str | None = None
        self._view = View()
        self._beaten_s = float("-inf")
        self._compact_at_s = time.monotonic() + COMPACT_EVERY_S
        self.statistics = PumpStatistics()
        self.act: Callable[[Action, bool], None] = _no_actuator
        """Called for each action once it is committed and published, and whether that is on the disk."""
        ledger.on_durability_change = self._woken.set

    @property
    def queued(self) -> int:
        return len(self._queue)

    async def submit(self, delivery: Delivery) -> None:
        """Hand over inputs; waits while the queue is full, so that no source outruns the store."""
        await self._room.acquire()
        self._queue.append(delivery)
        self._woken.set()

    async def ask(self, *inputs: Input) -> Taken:
        """Hand over inputs, and learn what became of them, once that is published."""
        answer: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()
        await self.submit(Delivery(source=AGENT, inputs=inputs, answer=answer))
        return await answer

    async def begin(
        self, outcome: Outcome, inputs: Iterable[Input], reported: Collection[Damage] = ()
    ) -> None:
        """The first turn of a process: what rebuilding found, then its own first inputs. These report the
        damage that ``reported`` names; the rest is reported here.
        """
        turn = _Turn(reports_damage=bool(reported))
        self._gather(turn, self._clock.rule_ns(), outcome)
        for given in inputs:
            self._step(turn, given)
        self._report_durability(turn)
        self._report_damage(turn, reported)
        await self._commit(turn)

    async def run(self) -> None:
        """Turn after turn, until ``finish`` was called and everything that came is committed.

        Raises RestartNeeded.
        """
        while self._queue or not self._finishing:
            await self._wait()
            self._woken.clear()
            turn = _Turn()
            for delivery in self._arrived():
                self._take(turn, delivery)
            self._step(turn, Tick())
            self._report_durability(turn)
            self._report_damage(turn)
            durable = not self._ledger.degraded
            if turn.inputs or turn.events or turn.cursors or time.monotonic() >= self._beaten_s + HEARTBEAT_S:
                durable = await self._commit(turn)
            self._answer(turn, durable)
            await self._compact_if_due()
            if self._ledger.earlier_life_waits:
                raise RestartNeeded(self._ledger.degraded)

    def finish(self) -> None:
        """Let ``run`` end; nothing may be submitted any more."""
        self._finishing = True
        self._woken.set()

    def preview(self, catalog: Catalog) -> Preview:
        """What these tables would change of what is open now."""
        return self._engine.preview(catalog)

    def dry_run_reset(self, device: str, once: bool) -> DryRun | None:
        """What a person's order to reset a device (name or id) would do now; None: no such device."""
        return self._engine.dry_run_reset(device, once)

    async def compact(self) -> None:
        """Write the live cells as the base from which the next start replays."""
        await self._ledger.compact(self._engine.carry(), self._engine.now_ns, self._clock.anchor())

    async def _wait(self) -> None:
        """Until something came, the store changed, the core has a deadline, or the heartbeat is due."""
        if self._queue:
            return
        wait_s = self._beaten_s + LATEST_BEAT_S - time.monotonic()
        deadline_ns = self._engine.next_deadline()
        if deadline_ns is not None:
            wait_s = min(wait_s, (deadline_ns - self._clock.rule_ns()) / 1e9)
        # A timer costs half of a time-out, which has to cancel the waiting task.
        timer = asyncio.get_running_loop().call_later(max(0.0, wait_s), self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()

    def _arrived(self) -> Iterator[Delivery]:
        taken = 0
        while self._queue and taken < MAX_INPUTS_A_TURN:
            delivery = self._queue.popleft()
            self._room.release()
            taken += max(1, len(delivery.inputs))
            yield delivery

    def _take(self, turn: _Turn, delivery: Delivery) -> None:
        before = len(turn.events)
        answer: Answer | None = None
        for given in delivery.inputs:
            answer = self._step(turn, given) or answer
        if delivery.cursor is not None:
            turn.cursors[delivery.source] = delivery.cursor
        if delivery.answer is not None:
            events = tuple(event for _, event in turn.events[before:])
            turn.taken.append((delivery.answer, Taken(events=events, answer=answer)))

    def _step(self, turn: _Turn, given: Input) -> Answer | None:
        now_ns = self._clock.rule_ns()
        outcome = self._engine.step(now_ns, given)
        self._gather(turn, now_ns, outcome)
        self.statistics.inputs += 1
        return outcome.answer

    def _gather(self, turn: _Turn, now_ns: int, outcome: Outcome) -> None:
        if not (outcome.records or outcome.events or outcome.actions):
            return
        offset_ns = self._clock.wall_offset_ns()
        turn.actions.extend(outcome.actions)
        for record in outcome.records:
            turn.inputs.append(Stamped(rule_ns=now_ns, wall_ns=now_ns + offset_ns, input=record))
        turn.events.extend((event.at_ns + offset_ns, event) for event in outcome.events)

    def _report_durability(self, turn: _Turn) -> None:
        """The store's trouble is a fault like any other, raised and cleared by this machinery."""
        degraded = self._ledger.degraded
        if degraded == self._reported_degraded:
            return
        self._reported_degraded = degraded
        signal = Signal(
            source=AGENT,
            device="node",
            code="store_degraded",
            assertion=Assertion.OCCUR if degraded else Assertion.RECOVER,
            evidence={"reason": degraded} if degraded else {},
        )
        self._step(turn, signal)

    def _report_damage(self, turn: _Turn, reported: Collection[Damage] = ()) -> None:
        """What was found damaged since the start: memory has all that decides, and a fault is raised."""
        for damage in self._ledger.damages:
            if damage not in reported:
                self._step(turn, store_damaged(damage))
            turn.reports_damage = True

    async def _commit(self, turn: _Turn) -> bool:
        """Whether it is on the disk."""
        begun_s = time.monotonic()
        committed = await self._ledger.commit(
            Transaction(
                inputs=tuple(turn.inputs),
                events=tuple(turn.events),
                engine_now_ns=self._engine.now_ns,
                anchor=self._clock.anchor(),
                cursors=turn.cursors,
                reports_damage=turn.reports_damage,
            )
        )
        # A step of a reset may come with no event: a turn in which nothing came shows it.
        if turn.inputs or turn.events or not turn.cursors:
            self._view = self._engine.view()
        self._publish(committed)
        for action in turn.actions:
            self.act(action, committed.durable)
        self._count(turn, time.monotonic() - begun_s)
        self._beat_if_due()
        return committed.durable

    def _answer(self, turn: _Turn, durable: bool) -> None:
        """A disk that is well again has been given what it missed: then there is no reason any more."""
        not_durable = "" if durable else self._ledger.degraded
        for answer, taken in turn.taken:
            if not answer.done():
                answer.set_result(replace(taken, not_durable=not_durable))

    def _beat_if_due(self) -> None:
        now_s = time.monotonic()
        if now_s - self._beaten_s >= SHORTEST_BEAT_S:
            self._beaten_s = now_s
            self._beat()

    def _publish(self, committed: Committed) -> None:
        self._feed.publish(
            Publication(
                view=self._view,
                store_id=committed.store_id,
                seq=committed.last_seq,
                durable=committed.durable,
                wall_offset_ns=self._clock.wall_offset_ns(),
            ),
            committed.events,
        )

    def _count(self, turn: _Turn, took_s: float) -> None:
        statistics = self.statistics
        statistics.commits += 1
        statistics.events += len(turn.events)
        statistics.commit_last_s = took_s
        statistics.commit_total_s += took_s

    async def _compact_if_due(self) -> None:
        due = time.monotonic() >= self._compact_at_s
        if (due or self._ledger.inputs_since_base > COMPACT_BEYOND_INPUTS) and not self._ledger.degraded:
            self._compact_at_s = time.monotonic() + COMPACT_EVERY_S
            await self.compact()
