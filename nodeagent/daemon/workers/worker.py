"""One worker process with its state and its deadlines: configured, polled, dismissed, killed, or left behind.

It decides how a worker ends, not whether it ends, nor what comes next: that is the supervisor's.

A record of a source may be such that reading it hangs or kills the worker, and the next worker finds the same
record. So a worker that ended unexpectedly is followed by a careful one, which reports the number of each
record of the history before it reads it. If that one ends as well, the record that it reported last is the
cause, and the next worker skips it. So each record is tried twice at most. A source without numbered records
is not affected.
"""

import asyncio
import logging
import signal
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nodeagent import wire
from nodeagent.core.catalog.catalog import CounterRule, Pattern, ThresholdRule
from nodeagent.daemon.workers.child import Child
from nodeagent.daemon.workers.lateness import Lateness
from nodeagent.daemon.workers.lifecycle import WorkerState, WorkerTrigger, after
from nodeagent.store.records import Cursor
from nodeagent.vendors import HELLO_DEADLINE_S
from nodeagent.wire import SOURCE, Baseline, Device, Poll, Setting, Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """What to run and how patiently; times in seconds. ``config`` is the driver's own section.

    A worker that ends is started again after ``backoff_first_s``, doubled each time up to the limit. Where a
    source that is not required is absent, it is looked for again after ``absent_retry_s``, doubled likewise
    (None: no more). The first one starts after ``start_delay_s``; one that has not said hello
    ``hello_deadline_s`` later has to go. ``stall_deadline_s`` is how long all devices together may owe an
    answer, where that is longer than a call may take.
    ``command`` empty: this interpreter's ``nodeagent.worker`` for ``source``. With ``host`` a unit hosts it
    in place of that, and listens there. ``cursor`` is the stored one; later workers go on from what was
    delivered since. ``known`` are its parts of earlier lives, ``expected_chips`` as in ``ExpectedChips``,
    ``exclude`` as in ``sources.inventory.marked``, ``baselines`` and ``open_codes`` as in
    ``wire.Configure``.
    """

    source: str
    boot_id: str
    config: Mapping[str, Setting] = field(default_factory=dict)
    patterns: Sequence[Pattern] = ()
    threshold: Sequence[ThresholdRule] = ()
    counter: Sequence[CounterRule] = ()
    cursor: Cursor | None = None
    known: Sequence[Device] = ()
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    open_codes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    expected_chips: int | None = None
    exclude: Sequence[str] = ()
    required: bool = False
    poll_interval_s: float = 1.0
    call_deadline_s: float = 5.0
    stall_deadline_s: float = 0.0
    hello_deadline_s: float = HELLO_DEADLINE_S
    terminate_grace_s: float = 10.0
    backoff_first_s: float = 0.25
    backoff_limit_s: float = 30.0
    absent_retry_s: float | None = 300.0
    absent_retry_limit_s: float = 1800.0
    start_delay_s: float = 0.0
    hang_up_limit_s: float = 2.0
    command: Sequence[str] = ()
    host: Path | None = None


log = logging.getLogger(__name__)

SIGKILL_LIMIT_S: Final = 5.0
"""A process that outlives SIGKILL for this long is stuck in the kernel."""


class Worker:
    """``due_s`` is when to look again: for the hello, the next poll, or the next step of killing.

    ``suspect`` is the device whose call an abandoned worker hangs in, "" if none can be named.
    """

    def __init__(self, child: Child, spec: WorkerSpec, skip: frozenset[str], now_s: float) -> None:
        self.child = child
        self.skip = skip
        self.state = WorkerState.STARTING
        self.lateness = Lateness(spec.call_deadline_s, spec.stall_deadline_s)
        self.started_s = now_s
        self.due_s = now_s + spec.hello_deadline_s
        self.unavailable: Unavailable | None = None
        self.garbled = 0
        self.suspect = ""
        self._spec = spec
        self._killed = False

    def take(self, trigger: WorkerTrigger) -> None:
        """Go on in the table. Raises ``IllegalTransition``."""
        log.debug("worker %d: %s, was %s", self.child.pid, trigger, self.state)
        self.state = after(self.state, trigger)

    def configure(
        self, patterns: Iterable[Pattern], cursor: Cursor | None, baselines: Mapping[str, wire.Baseline]
    ) -> None:
        """The first message to it; ``cursor`` is how far the source was read before, ``baselines`` what is
        kept of its parts.
        """
        spec = self._spec
        self.child.send(
            wire.Configure(
                driver=spec.source,
                boot_id=spec.boot_id,
                config=dict(spec.config),
                patterns=wire.as_patterns(patterns),
                cursor=wire.Cursor(boot_id=cursor.boot_id, seq=cursor.seq) if cursor else None,
                skip=tuple(self.skip),
                baselines=dict(baselines),
                open_codes={
                    identity: codes
                    for identity, codes in spec.open_codes.items()
                    if identity not in baselines
                },
            )
        )

    def reload(self, patterns: Iterable[Pattern]) -> None:
        self.child.send(wire.Patterns(patterns=wire.as_patterns(patterns)))

    def expect(self, devices: Iterable[Device]) -> None:
        """These it is to be asked for from now on."""
        self.lateness.expect(device.device for device in devices if device.device not in self.skip)

    def poll(self, poll_id: int, now_s: float) -> None:
        """Ask every device that owes no answer, and say when to do so next: all sources at the same moments,
        so that the daemon is woken by all of them at once.
        """
        interval_s = self._spec.poll_interval_s
        self.due_s = (round(now_s / interval_s) + 1) * interval_s
        if devices := self.lateness.free():
            self.lateness.ask(poll_id, devices, now_s)
            self.child.send(Poll(id=poll_id, devices=devices))

    async def name_suspect(self, limit_s: float) -> str:
        """Why no device answered in time, as far as its threads show it; names the suspect."""
        stuck = await self.child.stuck_threads()
        self.suspect = self._suspect(stuck)
        why = f"no device answered within {limit_s:g} s"
        if not self.suspect:
            return why
        where = "hangs in the kernel" if self.suspect[:15] in stuck else "has waited longest"
        return f"{why}; {self.suspect} {where}"

    async def dismiss(self) -> None:
        """It must go: by SIGTERM, or, if it is stuck in the driver, by being abandoned."""
        if stuck := await self.child.stuck_threads():
            self.abandon(stuck)
            return
        self.take(WorkerTrigger.DISMISSED)
        self.child.signal(signal.SIGTERM)
        self.due_s = loop_time_s() + self._spec.terminate_grace_s

    async def kill(self) -> None:
        """SIGTERM did not help in time: SIGKILL; when that has not helped in time either, abandon it."""
        stuck = await self.child.stuck_threads()
        if stuck or self._killed:
            self.abandon(stuck)
            return
        self._killed = True
        self.child.signal(signal.SIGKILL)
        self.due_s = loop_time_s() + SIGKILL_LIMIT_S

    def abandon(self, stuck: Collection[str]) -> None:
        """Leave it behind, with these of its threads in the kernel, and name the device that it hangs in."""
        self.suspect = self._suspect(stuck)
        self.take(WorkerTrigger.STUCK)
        log.error(
            "worker %d hangs in the kernel (%s): it cannot be stopped before its call returns",
            self.child.pid,
            ", ".join(sorted(stuck)) or "it outlived SIGKILL",
        )

    async def end(self) -> None:
        """End it for good, in bounded time: the end of its stdin first, then signals, none if it is stuck."""
        child = self.child
        child.hang_up()
        if self.state is WorkerState.ABANDONED or await child.wait(self._spec.hang_up_limit_s):
            return
        for number, limit_s in (
            (signal.SIGTERM, self._spec.terminate_grace_s),
            (signal.SIGKILL, SIGKILL_LIMIT_S),
        ):
            if await child.stuck_threads():
                return
            child.signal(number)
            if await child.wait(limit_s):
                return

    async def let_end(self) -> None:
        """Abandoned, it speaks again: once no call of it is stuck any more, it can end as any other does."""
        if not await self.child.stuck_threads():
            self.child.hang_up()

    def _suspect(self, stuck: Collection[str]) -> str:
        """The device whose thread is stuck; else the one that has waited longest."""
        late = [device for device in self.lateness.late if device != SOURCE]
        return next((device for device in late if device[:15] in stuck), late[0] if late else "")


def loop_time_s() -> float:
    """The time of the running event loop, which its time-outs use too: CLOCK_MONOTONIC, but for a loop that
    simulates its time.
    """
    return asyncio.get_running_loop().time()
