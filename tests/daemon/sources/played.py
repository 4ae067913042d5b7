"""The life of workers on a clock that is played: the supervisor and all behind it are real, the workers not.

Where everybody waits, time goes on to the next thing that is due; so hours pass in no time, and each run is
the same. What only a process can show (its pipes, signals, threads, descriptors) is for tests with real ones.
"""

import asyncio
import contextlib
import itertools
import logging
import selectors
import signal
from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nodeagent import wire
from nodeagent.core.model import Input, Kind
from nodeagent.daemon.pump import Delivery
from nodeagent.daemon.sources.supervisor import SourceSupervisor
from nodeagent.daemon.workers.child import Child, WorkerEvents, WorkerExited, WorkerReported
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.wire import SOURCE

ANSWER_S = 0.001
LOOK_S = 0.25

OPENING = "opening"
"""Where a worker may hang before it is ready, as in a device."""

T = TypeVar("T")


class _NobodySleeps(selectors.SelectSelector):
    """Time goes on in place of a sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if (ready := super().select(0)) or timeout == 0:
            return ready
        if timeout is None:
            raise AssertionError("everybody waits, and nothing is due any more")
        self.now_s += timeout
        return []


class PlayedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._played = _NobodySleeps()
        super().__init__(self._played)

    def time(self) -> float:
        return self._played.now_s


def play(story: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=PlayedLoop) as runner:
        return runner.run(story)


@dataclass
class Node:
    """What the workers meet. A call for a device that ``hangs`` waits until it no longer does; one that is
    ``stuck`` as well waits in the kernel. ``began`` are the workers, those that live are ``alive``.
    """

    devices: Collection[str]
    hangs: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    began: "list[PlayedWorker]" = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def alive(self) -> "list[PlayedWorker]":
        return [worker for worker in self.began if not worker.has_ended.is_set()]

    def hang(self, *devices: str, in_the_kernel: bool = False) -> None:
        self.hangs.update(devices)
        self.stuck.update(devices if in_the_kernel else ())

    def release(self, *devices: str) -> None:
        """The calls for these come back."""
        self.hangs.difference_update(devices)
        self.stuck.difference_update(devices)
        self.changed.set()
        self.changed = asyncio.Event()

    async def start(self, spec: WorkerSpec, inbox: WorkerEvents, log: logging.Logger) -> "PlayedWorker":
        worker = PlayedWorker(self, inbox)
        self.began.append(worker)
        return worker


class PlayedWorker(Child):
    """Asks each device in a task of its own, as a worker does in a thread."""

    _pids = itertools.count(1)

    def __init__(self, node: Node, inbox: WorkerEvents) -> None:
        self.has_ended = asyncio.Event()
        self.signals: list[signal.Signals] = []
        self._number = next(self._pids)
        self._node = node
        self._inbox = inbox
        self._in_calls: set[str] = set()
        self._is_asked_to_end = False
        self._work: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int:
        return self._number

    @property
    def last_words(self) -> str:
        return ""

    def send(self, order: wire.Request) -> bool:
        match order:
            case wire.Configure(skip=skip):
                self._do(self._open([device for device in self._node.devices if device not in skip]))
            case wire.Poll(id=number, devices=devices):
                for device in devices:
                    self._do(self._poll(number, device))
        return True

    def signal(self, number: signal.Signals) -> None:
        self.signals.append(number)
        self._end_if_it_can("killed by " + number.name)

    def crash(self) -> None:
        """Not in the kernel, where nothing reaches it."""
        self._end_if_it_can("killed by SIGSEGV")

    def hang_up(self) -> None:
        self._is_asked_to_end = True
        self._end_if_it_can("exit status 0")

    async def stuck_threads(self) -> frozenset[str]:
        return frozenset(self._in_calls & self._node.stuck)

    async def wait(self, limit_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self.has_ended.wait()
        return self.has_ended.is_set()

    async def release(self) -> None:
        for task in self._work:
            task.cancel()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _say(self, report: wire.Report) -> None:
        await asyncio.sleep(ANSWER_S)
        if not self.has_ended.is_set():
            await self._inbox.put(WorkerReported(self, report))

    async def _open(self, listed: Collection[str]) -> None:
        self._in_calls.add(OPENING)
        while OPENING in self._node.hangs:
            await self._node.changed.wait()
        self._in_calls.remove(OPENING)
        devices = tuple(wire.Device(device=device, kind=Kind.CHIP, vendor="fake") for device in listed)
        await self._say(wire.Hello(devices=devices))

    async def _poll(self, number: int, device: str) -> None:
        self._in_calls.add(device)
        while device in self._node.hangs:
            await self._node.changed.wait()
        self._in_calls.remove(device)
        active = None if device == SOURCE else ()
        await self._say(wire.Reply(id=number, device=device, begun_ns=1, took_ns=1, active=active))
        if self._is_asked_to_end:
            self._end_if_it_can("exit status 0")

    def _end_if_it_can(self, how: str) -> None:
        if not self.has_ended.is_set() and not self._in_calls & self._node.stuck:
            self.has_ended.set()
            self._do(self._inbox.put(WorkerExited(self, how)))


@dataclass
class Watched:
    """A supervisor and all that it has delivered, each with the moment."""

    supervisor: SourceSupervisor
    delivered: list[tuple[float, Input]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def inputs(self) -> list[Input]:
        return [given for _, given in self.delivered]

    async def until(self, holds: Callable[[], bool], within_s: float) -> None:
        """Looked at with each delivery, and now and then."""
        async with asyncio.timeout(within_s):
            while not holds():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self.arrived.wait()
                self.arrived.clear()


async def watched(spec: WorkerSpec, node: Node, story: Callable[[Watched], Awaitable[None]]) -> Watched:
    """It runs while the story does, and then ends its workers."""
    watch: Watched

    async def deliver(delivery: Delivery) -> None:
        now_s = asyncio.get_running_loop().time()
        watch.delivered += [(now_s, given) for given in delivery.inputs]
        watch.arrived.set()

    watch = Watched(SourceSupervisor(spec, deliver, lambda stamp_ns: stamp_ns, node.start))
    running = asyncio.create_task(watch.supervisor.run())
    await story(watch)
    await watch.supervisor.stop()
    await running
    return watch
