"""A worker's successor: started next to it where one is wanted, and in its place once it is ready.

Some libraries keep for the life of a process what they found at its start. Another process sees what is there
now, and until it is ready the one in use goes on observing. That one says what its successor must list to
take over: what drops while the library is opened is not lost from sight for it.

It delivers nothing; what a successor says of the source from its hello on is the supervisor's to hear.
"""

import logging
from collections.abc import Collection
from typing import Final

from nodeagent.daemon.workers.child import (
    WorkerEvent,
    WorkerEvents,
    WorkerExited,
    WorkerGarbled,
    WorkerReported,
)
from nodeagent.daemon.workers.lifecycle import WorkerState
from nodeagent.daemon.workers.worker import Worker, loop_time_s
from nodeagent.daemon.workers.worker_set import WorkerSet
from nodeagent.wire import SOURCE, Hello, Renew, Unavailable

log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 300.0
"""Opening a library costs the node so much that what does not help is tried as seldom as this."""

QUIET_S: Final = 30.0
"""Not asked for so long, whatever the last successors were for is over."""


class RenewalPace:
    """When what is asked for again and again is done: at once, and then ever more seldom. Pure."""

    def __init__(self) -> None:
        self._pause_s = FIRST_PAUSE_S
        self._not_before_s = 0.0
        self._asked_s = 0.0

    def is_due(self, now_s: float) -> bool:
        """Asked for ``now_s``, of a clock that does not step. It stays due until it was ``done``."""
        if now_s - self._asked_s > QUIET_S:
            self._pause_s, self._not_before_s = FIRST_PAUSE_S, now_s
        self._asked_s = now_s
        return now_s >= self._not_before_s

    def done(self, now_s: float) -> None:
        self._not_before_s = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)


class Renewal:
    """The renewal of one source's workers."""

    def __init__(self, source: str, workers: WorkerSet, queue: WorkerEvents) -> None:
        self._source = source
        self._workers = workers
        self._queue = queue
        self._pace = RenewalPace()
        self._asked: Renew | None = None
        self._wanted: Renew | None = None

    def concerns(self, worker: Worker) -> bool:
        """Whether it is a successor, or one that was replaced by its own."""
        return worker is self._workers.successor or worker in self._workers.retired

    def want(self, asked: Renew) -> None:
        """One that begins later than now has to take over, as soon as it may."""
        self._wanted = asked

    def has_restarted(self) -> None:
        """A worker begins that is no successor: it sees all that there is, and none was asked for before."""
        self._wanted = None
        self._pace = RenewalPace()

    async def begin_wanted(self, resting: Collection[str]) -> None:
        """It stays wanted until one that has begun for it has taken over."""
        if self._wanted is not None:
            await self.ask(self._wanted, resting)

    async def ask(self, asked: Renew, resting: Collection[str]) -> None:
        """A successor of the worker in use, which goes on until that one is ready.

        None begins while a device is late or at rest, for it would be asked too, nor while an earlier process
        has not ended.
        """
        workers, now_s = self._workers, loop_time_s()
        if not self._pace.is_due(now_s) or workers.worker is None or workers.worker.lateness.late or resting:
            return
        if workers.successor or workers.abandoned or workers.retired:
            return
        self._pace.done(now_s)
        self._asked = asked
        log.info("%s: starting a second worker: %s", self._source, asked.reason)
        try:
            child = await self._workers.start(self._queue, log)
        except OSError as error:
            log.warning("%s: cannot start a second worker: %s", self._source, error)
            return
        workers.begin_successor(child)

    def call_off_if_late(self, now_s: float) -> None:
        """A successor that has not said hello in time ends."""
        if self._workers.successor is not None and self._workers.successor.due_s <= now_s:
            self._call_off("it was not ready in time")

    async def take(self, worker: Worker, happening: WorkerEvent) -> Hello | None:
        """What one that this ``concerns`` said or did. The hello of a successor that is in use now."""
        is_successor = worker is self._workers.successor
        match happening:
            case WorkerExited(how=how):
                if is_successor:
                    log.warning("%s: the second worker ended by itself: %s", self._source, how)
                self._workers.let_go_of(worker)
                await worker.child.release()
            case WorkerReported(report=Hello() as hello) if is_successor and self._sees_enough(hello):
                log.info("%s: worker %d takes over", self._source, worker.child.pid)
                self._workers.replace_by_successor()
                if self._wanted is self._asked:
                    self._wanted = None
                return hello
            case WorkerReported(report=Hello()) if is_successor:
                self._call_off("it lists no more devices than the first")
            case WorkerReported(report=Unavailable(reason=reason)) | WorkerGarbled(reason=reason):
                if is_successor:
                    self._call_off(reason)
        return None

    def _sees_enough(self, hello: Hello) -> bool:
        """What the worker in use asked that it sees."""
        worker, asked = self._workers.worker, self._asked
        if worker is None or worker.state is not WorkerState.READY or asked is None:
            return False
        seen = set(worker.lateness.expected) - {SOURCE}
        listed = {device.device for device in hello.devices}
        return asked.lists == "any" or (seen < listed if asked.lists == "more" else seen <= listed)

    def _call_off(self, reason: str) -> None:
        log.info("%s: stopping the second worker: %s", self._source, reason)
        self._workers.call_off_successor()
