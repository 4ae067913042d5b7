"""One source: its worker is started, polled, watched, ended, left behind and replaced.

The states of a worker process are the table in ``lifecycle``; ``worker`` acts on one process, ``child`` reads
its pipes, ``worker_set`` knows which worker is in use and when the next one starts. ``report_handler`` and
``observation`` turn reports into inputs. The supervisor joins them in one task, which takes one report or one
deadline after the other:

    worker ──stdout──> Child ──bounded queue──> Supervisor ──await deliver──> the pump
       ^                                            │
       └──────────────── stdin, never waited for ───┘

While the pump is behind, the worker waits on its pipe, and no device counts as late for that time. The
supervisor never touches a device, never judges a fault, and waits for a child only within a limit.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from typing import Final

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.model import Input, Loss
from nodeagent.daemon.pump import Delivery
from nodeagent.daemon.sources.baselines import KeptBaselines
from nodeagent.daemon.sources.observation import Observation
from nodeagent.daemon.sources.report_handler import InvalidReport, ReportHandler, Statistics
from nodeagent.daemon.sources.telemetry_edges import RuleReadings
from nodeagent.daemon.sources.translate import StampClock
from nodeagent.daemon.workers.child import WorkerEvent, WorkerExited, WorkerGarbled, WorkerReported
from nodeagent.daemon.workers.lifecycle import WorkerState, WorkerTrigger
from nodeagent.daemon.workers.renewal import Renewal
from nodeagent.daemon.workers.worker import Worker, WorkerSpec, loop_time_s
from nodeagent.daemon.workers.worker_set import Inbox, Start, WorkerSet, start_process
from nodeagent.metrics.daemon import SourceHealth
from nodeagent.wire import SOURCE, Renew, Reply

log = logging.getLogger(__name__)
MAX_GARBLED: Final = 100
LOGGED_GARBLED: Final = 3


class SourceSupervisor:
    """``deliver`` may wait, ``to_rule_ns`` turns CLOCK_BOOTTIME stamps into rule time, ``start`` starts the
    process of a worker. ``name`` is that of the source.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        deliver: Callable[[Delivery], Awaitable[None]],
        to_rule_ns: Callable[[int], int],
        start: Start = start_process,
    ) -> None:
        self.name: Final = spec.source
        self._spec = spec
        self._statistics = Statistics()
        clock = StampClock(
            boottime_ns=lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME), to_rule_ns=to_rule_ns
        )
        self._observation = Observation(
            spec.source, spec.required, clock, spec.known, spec.expected_chips, spec.exclude
        )
        self._readings = RuleReadings(spec.source, spec.threshold, spec.counter)
        self._workers = WorkerSet(spec, start)
        self._baselines = KeptBaselines(spec.source, self._workers.baselines)
        self._report_handler = ReportHandler(
            spec.source,
            spec.boot_id,
            self._observation,
            self._readings,
            self._statistics,
            self._baselines,
        )
        self._outgoing = Outgoing(spec.source, deliver, self._workers)
        self._inbox = Inbox(self._workers)
        self._renewal = Renewal(spec.source, self._workers, self._inbox.queue)
        self._poll_id = 0
        self._stopping = False
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Until ``stop`` or cancelled; ends every worker that can be ended."""
        self._task = asyncio.current_task()
        self._workers.spawn_at_s = loop_time_s() + self._spec.start_delay_s
        try:
            while not self._stopping:
                async with self._turn:
                    await self._do_due()
                happened = await self._inbox.arrived()
                async with self._turn:
                    for happening in happened:
                        await self._take(happening)
                    await self._outgoing.deliver()
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        finally:
            await self._workers.end_all()
            self._ended.set()

    async def stop(self) -> None:
        """End the workers; returns when ``run`` has. What was not delivered is read again next time."""
        stopping, self._stopping = self._stopping, True
        if self._task is not None:
            if not stopping:
                self._task.cancel()
            await self._ended.wait()

    async def rest(self, devices: Collection[str], reason: str) -> None:
        """Let these alone: they are not asked, and nothing that is said of them is taken."""
        self._workers.call_off_successor()
        inputs = self._observation.rest(devices, reason)
        self._let_alone()
        await self._outgoing.deliver(inputs)

    async def wake(self, devices: Collection[str]) -> None:
        inputs = self._observation.wake(devices)
        self._let_alone()
        await self._outgoing.deliver(inputs)

    def begin_at_rest(self, devices: Collection[str], reason: str) -> None:
        """Before ``run``: as ``rest``."""
        self._observation.rest(devices, reason)

    def hold_off(self) -> None:
        """Before ``run``: begin as one that has let go."""
        self._workers.has_let_go = True

    async def let_go(self, reason: str) -> bool:
        """End the worker, and with it all that we have open, until ``take_up``. False: it hangs in a call.

        It is reported as lost; of a library that was never here nothing is lost.
        """
        async with self._turn:
            worker = self._workers.let_go()
            await self._outgoing.deliver(self._observation.let_go(reason))
            return await self._workers.end_for_good(worker)

    def take_up(self) -> None:
        """Start a worker again, after ``let_go`` or ``hold_off``."""
        self._workers.has_let_go = False
        self._workers.spawn_soon()

    def reload(self, catalog: Catalog) -> None:
        """From now on match its patterns, and report of readings what its rules ask."""
        self._readings.judge_by(catalog.threshold, catalog.counter)
        self._workers.reload(catalog.patterns)

    def renew(self, reason: str) -> None:
        """Soon another process has to go on in place of the worker in use, without a gap."""
        self._renewal.want(Renew(reason=reason, lists="any"))

    def restart_baseline(self, identity: str, number: int) -> None:
        """A person has ended the baseline of a part: soon a worker that takes the part as it is goes on."""
        if self._baselines.restart(identity, number):
            self.renew(f"the baseline of {identity} begins again")

    async def expect(self, chips: int | None) -> None:
        """From now on it should list so many (see ``ExpectedChips``)."""
        await self._outgoing.deliver(self._observation.expect(chips))

    def health(self) -> SourceHealth:
        """As of now; from any thread."""
        return health_of(self.name, self._workers, self._observation, self._statistics)

    # ------------------------------------------------------------------ what is due

    async def _do_due(self) -> None:
        now_s = loop_time_s()
        self._renewal.call_off_if_late(now_s)
        worker = self._workers.worker
        if worker is None:
            is_due = self._workers.spawn_at_s is not None and self._workers.spawn_at_s <= now_s
            if is_due and not self._workers.has_let_go:
                await self._spawn()
            return
        # Only when every report is taken is it certain that an answer is missing.
        if worker.state is WorkerState.READY and self._inbox.queue.empty():
            await self._judge_lateness(worker, now_s)
        if worker.due_s > now_s:
            return
        match worker.state:
            case WorkerState.READY:
                await self._renewal.begin_wanted(self._observation.resting)
                self._poll_id += 1
                worker.poll(self._poll_id, now_s)
            case WorkerState.STARTING:
                reason = f"its worker was not ready within {self._spec.hello_deadline_s:g} s"
                await self._outgoing.deliver(self._observation.late([SOURCE], reason))
                await self._dismiss(worker, reason, Loss.NOT_RUNNING)
            case WorkerState.KILLING:
                await worker.kill()
                self._workers.replace_if_abandoned(worker)

    async def _judge_lateness(self, worker: Worker, now_s: float) -> None:
        late = worker.lateness.newly_late(now_s)
        if not late:
            return
        limit_s = self._spec.call_deadline_s
        if worker.lateness.all_late:
            limit_s = max(limit_s, self._spec.stall_deadline_s)
        reason = f"no answer within {limit_s:g} s"
        log.warning("%s: %s: %s", self.name, ", ".join(late), reason)
        if worker.lateness.all_late:
            why = await worker.name_suspect(limit_s)
            await self._outgoing.deliver(
                [*self._observation.lost(why), *self._observation.late(late, reason)]
            )
            await self._dismiss(worker, why)
        else:
            await self._outgoing.deliver(self._observation.late(late, reason))

    # ------------------------------------------------------------------ workers come and go

    async def _spawn(self) -> None:
        try:
            child = await self._workers.start(self._inbox.queue, log)
        except OSError as error:
            reason = f"cannot start its worker: {error}"
            await self._outgoing.deliver(self._observation.lost(reason, Loss.NOT_RUNNING))
            self._workers.spawn_after_a_failure()
            return
        self._statistics.spawned += 1
        self._renewal.has_restarted()
        self._workers.begin(child)
        self._let_alone()

    def _let_alone(self) -> None:
        if self._workers.worker is not None:
            self._workers.worker.lateness.let_alone(self._observation.resting, loop_time_s())

    async def _dismiss(self, worker: Worker, reason: str, how: Loss = Loss.NOT_READ) -> None:
        log.warning("%s: stopping worker %d: %s", self.name, worker.child.pid, reason)
        await self._outgoing.deliver(self._observation.lost(reason, how))
        await worker.dismiss()
        self._workers.replace_if_abandoned(worker)

    async def _take_exit(self, worker: Worker, how: str) -> None:
        before = worker.state
        worker.take(WorkerTrigger.EXITED)
        await worker.child.release()
        if before is WorkerState.ABANDONED:
            self._workers.abandoned.remove(worker)
            await self._respawn_whole()
            return
        self._workers.worker = None
        if before is not WorkerState.KILLING and not worker.unavailable:
            words = worker.child.last_words
            reason = f"ended by itself: {how}" + (f"; its last words: {words}" if words else "")
            log.error("%s: worker %d %s", self.name, worker.child.pid, reason)
            await self._outgoing.deliver(self._observation.crashed(reason))
        self._workers.forgive(worker)
        if worker.unavailable and self._observation.absent:
            self._workers.spawn_after_an_absence()
        elif before is not WorkerState.KILLING or not self._workers.abandoned:
            self._workers.spawn_after_a_failure()

    async def _respawn_whole(self) -> None:
        """Nothing is stuck any more: a worker that skips a device gives way to one that does not. One that
        observes the others goes on until then.
        """
        if self._workers.abandoned:
            return
        worker = self._workers.worker
        if worker is None:
            self._workers.spawn_soon()
        elif worker.skip and worker.state is WorkerState.READY:
            self.renew("no device hangs any more")
        elif worker.skip and worker.state is not WorkerState.KILLING:
            await self._dismiss(worker, "another one takes its place, for all devices")

    # ------------------------------------------------------------------ what was heard

    async def _take(self, happening: WorkerEvent) -> None:
        worker = self._workers.of(happening.child)
        if worker is None:
            return
        if self._renewal.concerns(worker):
            if (hello := await self._renewal.take(worker, happening)) is not None:
                self._let_alone()
                await self._outgoing.hand_over(self._report_handler.take_over(worker, hello))
            return
        match happening:
            case WorkerExited(how=how):
                await self._take_exit(worker, how)
            case WorkerReported() if worker.state is WorkerState.ABANDONED:
                await worker.let_end()
            case _ if worker.state not in (WorkerState.STARTING, WorkerState.READY):
                pass
            case WorkerGarbled(reason=reason):
                await self._garbled(worker, reason)
            case WorkerReported(report=Renew() as asked) if worker.state is WorkerState.READY:
                await self._renewal.ask(asked, self._observation.resting)
            case WorkerReported(report=report):
                try:
                    delivery = self._report_handler.take(worker, report)
                except InvalidReport as error:
                    await self._garbled(worker, str(error))
                else:
                    if isinstance(report, Reply):
                        self._outgoing.hold(delivery.inputs)
                    else:
                        await self._outgoing.hand_over(delivery)

    async def _garbled(self, worker: Worker, reason: str) -> None:
        self._statistics.garbled += 1
        worker.garbled += 1
        if worker.garbled <= LOGGED_GARBLED:
            log.warning("%s: worker %d: %s", self.name, worker.child.pid, reason)
        if worker.garbled >= MAX_GARBLED:
            why = f"was stopped after {MAX_GARBLED} invalid messages, the last: {reason}"
            await self._outgoing.deliver(self._observation.crashed(why))
            await self._dismiss(worker, why)


class Outgoing:
    """What goes from one source to the pump. ``deliver`` and ``hand_over`` may wait."""

    def __init__(
        self, source: str, deliver: Callable[[Delivery], Awaitable[None]], workers: WorkerSet
    ) -> None:
        self._source = source
        self._to_pump = deliver
        self._workers = workers
        self._held: list[Input] = []

    def hold(self, inputs: Iterable[Input]) -> None:
        """These go with what is handed over next, in their order: a delivery costs more than an input."""
        self._held += inputs

    async def deliver(self, inputs: Iterable[Input] = ()) -> None:
        await self.hand_over(Delivery(source=self._source, inputs=tuple(inputs)))

    async def hand_over(self, delivery: Delivery) -> None:
        """And what was held. The time it takes is not the driver's."""
        inputs, self._held = (*self._held, *delivery.inputs), []
        if not inputs and delivery.cursor is None:
            return
        begun_s = loop_time_s()
        await self._to_pump(replace(delivery, inputs=inputs))
        if delivery.cursor is not None:
            self._workers.accounted_for(delivery.cursor)
        if self._workers.worker is not None:
            self._workers.worker.lateness.excuse(loop_time_s() - begun_s)


def health_of(
    source: str, workers: WorkerSet, observation: Observation, statistics: Statistics
) -> SourceHealth:
    worker = workers.worker
    late = worker.lateness.late if worker else ()
    answers = tuple(statistics.answers.values())
    is_well = not late and not observation.is_lost and all(ok for _, ok in answers)
    return SourceHealth(
        source=source,
        state=workers.state,
        observing=observation.observing,
        absent=observation.absent,
        listed_chips=observation.chips.listed,
        expected_chips=observation.chips.number,
        pid=worker.child.pid if worker else None,
        abandoned_pids=tuple(abandoned.child.pid for abandoned in tuple(workers.abandoned)),
        restarts=max(0, statistics.spawned - 1),
        polls=statistics.polls,
        poll_failures=statistics.poll_failures,
        last_poll_duration_s=max((took_s for took_s, _ in answers), default=None),
        last_poll_ok=is_well if answers or not is_well else None,
        late_devices=late,
        records_lost=statistics.records_lost,
        garbled=statistics.garbled,
        readings={
            device: readings
            for device, readings in tuple(statistics.readings.items())
            if observation.observes(device)
        },
    )
