"""The workers of one source: the one in use, its successor, those left behind, when the next one starts, and
the queue of what they report.

It does not decide whether a worker has to end, nor what is reported of that: the supervisor does. Times are
of the event loop's clock.
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from nodeagent.core.catalog.catalog import Pattern
from nodeagent.daemon.workers.child import Child, WorkerEvent, WorkerEvents
from nodeagent.daemon.workers.lifecycle import WorkerState
from nodeagent.daemon.workers.process import start_hosted
from nodeagent.daemon.workers.worker import Worker, WorkerSpec, loop_time_s
from nodeagent.store.records import Cursor

LET_GO_LOOK_S: Final = 0.2
Start = Callable[[WorkerSpec, WorkerEvents, logging.Logger], Awaitable[Child]]
"""How the process of a worker is started. Raises ``OSError``."""


async def start_process(spec: WorkerSpec, inbox: WorkerEvents, log: logging.Logger) -> Child:
    """A child of ours, or where a unit hosts it."""
    if spec.host is not None:
        return await Child.of(await start_hosted(spec.host, spec.source), inbox, log)
    command = spec.command or (sys.executable, "-m", "nodeagent.worker", spec.source)
    return await Child.spawn(command, inbox, log)


class WorkerSet:
    """``worker`` is the one in use, ``successor`` is to take its place; those ``retired`` were asked to end.
    ``spawn_at_s`` is None while none is to begin, and none does while it ``has_let_go``. ``baselines`` are
    what the next one is given.
    """

    def __init__(self, spec: WorkerSpec, start: Start) -> None:
        self.worker: Worker | None = None
        self.successor: Worker | None = None
        self.retired: list[Worker] = []
        self.abandoned: list[Worker] = []
        self.spawn_at_s: float | None = None
        self.has_let_go = False
        self._spec = spec
        self._start = start
        self._patterns = tuple(spec.patterns)
        self._cursor = spec.cursor
        self.baselines = dict(spec.baselines)
        self._failures = 0
        self._absences = 0

    @property
    def state(self) -> str:
        """The state of the worker in use; without one ``waiting`` for the next, or ``abandoned``. From any
        thread.
        """
        if (worker := self.worker) is not None:
            return worker.state.value
        return "abandoned" if self.abandoned and self.spawn_at_s is None else "waiting"

    def due_s(self) -> float | None:
        """When to look again: at the worker in use, or whether one is to begin. None: not by itself."""
        if self.has_let_go:
            return loop_time_s() + LET_GO_LOOK_S
        if (worker := self.worker) is None:
            due_s = [self.spawn_at_s]
        else:
            due_s = [worker.due_s, worker.lateness.due_s() if worker.state is WorkerState.READY else None]
        due_s.append(self.successor.due_s if self.successor else None)
        return min((each for each in due_s if each is not None), default=None)

    def of(self, child: Child) -> Worker | None:
        """None: it is no longer one of these."""
        return next((worker for worker in self._all() if worker.child is child), None)

    async def start(self, inbox: WorkerEvents, log: logging.Logger) -> Child:
        """The process of the next one. Raises ``OSError``."""
        return await self._start(self._spec, inbox, log)

    def begin(self, child: Child) -> None:
        """The next one, which skips the devices that earlier ones hang in."""
        skip = frozenset(worker.suspect for worker in self.abandoned)
        self.spawn_at_s = None
        self.worker = self._configured(child, skip)

    def begin_successor(self, child: Child) -> None:
        """The successor of the one in use."""
        self.successor = self._configured(child, frozenset())

    def _configured(self, child: Child, skip: frozenset[str]) -> Worker:
        worker = Worker(child, self._spec, skip, loop_time_s())
        worker.configure(self._patterns, self._cursor, self.baselines)
        return worker

    def reload(self, patterns: Iterable[Pattern]) -> None:
        """All match these from now on."""
        self._patterns = tuple(patterns)
        for worker in (self.worker, self.successor):
            if worker is not None and worker.state in (WorkerState.STARTING, WorkerState.READY):
                worker.reload(self._patterns)

    def accounted_for(self, cursor: Cursor) -> None:
        """Later workers go on after it."""
        self._cursor = cursor

    def replace_by_successor(self) -> None:
        """It is the one in use from now on."""
        before, self.worker, self.successor = self.worker, self.successor, None
        if before is not None:
            self._retire(before)

    def call_off_successor(self) -> None:
        """The one in use stays."""
        if (successor := self.successor) is not None:
            self.successor = None
            self._retire(successor)

    def _retire(self, worker: Worker) -> None:
        """It ends when its standard input does; where it hangs in the kernel, as soon as the call returns."""
        worker.child.hang_up()
        self.retired.append(worker)

    def let_go_of(self, worker: Worker) -> None:
        """It has ended: a successor, or one that was asked to end."""
        if worker is self.successor:
            self.successor = None
        else:
            self.retired.remove(worker)

    def let_go(self) -> Worker | None:
        """None is in use from now on, nor begins; the one that was."""
        self.has_let_go = True
        self.call_off_successor()
        worker, self.worker = self.worker, None
        return worker

    async def end_for_good(self, worker: Worker | None) -> bool:
        """It, and those asked to end, in bounded time. False: one hangs in the kernel, and stays."""
        if worker is not None:
            await worker.end()
            if await worker.child.wait(0.0):
                await worker.child.release()
            else:
                worker.abandon(await worker.child.stuck_threads())
                self.replace_if_abandoned(worker)
        for each in tuple(self.retired):
            await each.end()
            if await each.child.wait(0.0):
                await each.child.release()
                self.retired.remove(each)
        return not (self.abandoned or self.retired)

    def spawn_soon(self) -> None:
        """Next to an abandoned worker one replacement, and only one that can avoid the device it hangs in."""
        can_avoid = len(self.abandoned) == 1 and bool(self.abandoned[0].suspect)
        self.spawn_at_s = loop_time_s() if can_avoid or not self.abandoned else None

    def spawn_after_a_failure(self) -> None:
        """With back-off, for it may fail again."""
        pause_s = min(self._spec.backoff_first_s * 2**self._failures, self._spec.backoff_limit_s)
        self._failures = min(self._failures + 1, 32)
        self.spawn_at_s = loop_time_s() + pause_s

    def spawn_after_an_absence(self) -> None:
        """Ever more seldom: what a node lacks for long it hardly gets, and each look costs a process."""
        if (first_s := self._spec.absent_retry_s) is None:
            return
        pause_s = min(first_s * 2**self._absences, max(first_s, self._spec.absent_retry_limit_s))
        self._absences = min(self._absences + 1, 32)
        self.spawn_at_s = loop_time_s() + pause_s

    def forgive(self, worker: Worker) -> None:
        """One that has lived for long: the next back-off begins again."""
        if loop_time_s() - worker.started_s > self._spec.backoff_limit_s:
            self._failures = 0

    def replace_if_abandoned(self, worker: Worker) -> None:
        """The one in use, if it is stuck, keeps its process, and another takes its place."""
        if worker.state is WorkerState.ABANDONED:
            self.worker = None
            self.abandoned.append(worker)
            self.spawn_soon()

    async def end_all(self) -> None:
        """End all of them for good, in bounded time."""
        workers = self._all()
        self.worker, self.successor, self.retired, self.abandoned = None, None, [], []
        for worker in workers:
            await worker.end()
            await worker.child.release()

    def _all(self) -> list[Worker]:
        in_use = [worker for worker in (self.successor, self.worker) if worker is not None]
        return [*self.abandoned, *self.retired, *in_use]


MAX_QUEUED: Final = 32
"""More than the devices of a node that are polled together: what they answer is taken in one turn."""

OVERSLEPT_S: Final = 0.5
"""A loop that wakes later than this was itself held up; the drivers are not late by it."""


class Inbox:
    """Children put what happens into ``queue``, and wait while it is full."""

    def __init__(self, workers: WorkerSet) -> None:
        self.queue: WorkerEvents = asyncio.Queue(MAX_QUEUED)
        self._workers = workers

    async def arrived(self) -> Iterable[WorkerEvent]:
        """What has happened, in order, as soon as there is any; nothing when something is due before."""
        first = [await self._next()] if self.queue.empty() else []
        rest = [self.queue.get_nowait() for _ in range(self.queue.qsize())]
        return filter(None, (*first, *rest))

    async def _next(self) -> WorkerEvent | None:
        due_s = self._workers.due_s()
        if due_s is None:
            return await self.queue.get()
        # A timer costs half of a time-out, which has to cancel the waiting task.
        timer = asyncio.get_running_loop().call_at(due_s, self._remind)
        try:
            happening = await self.queue.get()
        finally:
            timer.cancel()
        overslept_s = loop_time_s() - due_s
        if happening is None and self._workers.worker is not None and overslept_s > OVERSLEPT_S:
            self._workers.worker.lateness.excuse(overslept_s)
        return happening

    def _remind(self) -> None:
        """Anything in the queue wakes the reader: then a reminder is not needed."""
        if self.queue.empty():
            self.queue.put_nowait(None)
