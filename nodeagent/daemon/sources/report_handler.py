"""Turns a worker's report into inputs, and keeps what it shows about the worker.

It waits for nothing and ends nothing. A report that cannot be true raises ``InvalidReport``.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodeagent import wire
from nodeagent.core.model import Input
from nodeagent.daemon.pump import Delivery
from nodeagent.daemon.sources.baselines import KeptBaselines
from nodeagent.daemon.sources.observation import Observation
from nodeagent.daemon.sources.telemetry_edges import RuleReadings
from nodeagent.daemon.workers.lifecycle import WorkerState, WorkerTrigger
from nodeagent.daemon.workers.worker import Worker, loop_time_s
from nodeagent.store.records import Cursor

log = logging.getLogger(__name__)


class InvalidReport(Exception):
    """A well-formed report that its worker had no reason to send."""


class ReportHandler:
    """Takes the reports of all workers of one source, one after another."""

    def __init__(
        self,
        source: str,
        boot_id: str,
        observation: Observation,
        readings: RuleReadings,
        statistics: "Statistics",
        baselines: KeptBaselines,
    ) -> None:
        self._source = source
        self._boot_id = boot_id
        self._observation = observation
        self._readings = readings
        self._statistics = statistics
        self._baselines = baselines
        self._said_unavailable = ""

    def take(self, worker: Worker, report: wire.Report) -> Delivery:
        """The delivery it makes, maybe an empty one. Raises ``InvalidReport``."""
        inputs = self._inputs(worker, report)
        cursor = None
        if isinstance(report, wire.Batch):
            self._statistics.records_lost += report.lost
            if report.cursor is not None:
                cursor = Cursor(boot_id=self._boot_id, seq=report.cursor)
        return Delivery(source=self._source, inputs=tuple(inputs), cursor=cursor)

    def _inputs(self, worker: Worker, report: wire.Report) -> Sequence[Input]:
        observation = self._observation
        if isinstance(report, wire.Unavailable):
            worker.unavailable = report
            return self._unavailable(report)
        if isinstance(report, wire.Hello):
            return self._hello(worker, report)
        if worker.state is WorkerState.STARTING:
            raise InvalidReport(f"{type(report).__name__} before hello")
        match report:
            case wire.Devices():
                self._expect(worker, report.devices)
                self._readings.forget()
                return observation.population(report)
            case wire.Batch():
                return observation.batch(report)
            case wire.Reply():
                return self._reply(worker, report)
            case wire.CaughtUp():
                return observation.caught_up(report)
            case wire.Renew():
                # The supervisor does what is asked.
                return ()
            case wire.Lost():
                log.warning("%s: %s", self._source, report.reason)
                return observation.lost(report.reason)

    def _unavailable(self, report: wire.Unavailable) -> Sequence[Input]:
        """A source that most nodes lack is logged once."""
        inputs = self._observation.unavailable(report)
        level = logging.WARNING if self._observation.is_lost else logging.INFO
        log.log(
            level if report.reason != self._said_unavailable else logging.DEBUG,
            "%s: %s",
            self._source,
            report.reason,
        )
        self._said_unavailable = report.reason
        return inputs

    def take_over(self, worker: Worker, hello: wire.Hello) -> Delivery:
        """It continues where another one stops: what was observed still is."""
        self._ready(worker, hello)
        return Delivery(source=self._source, inputs=tuple(self._observation.population(hello)))

    def _hello(self, worker: Worker, hello: wire.Hello) -> Sequence[Input]:
        if worker.state is not WorkerState.STARTING:
            raise InvalidReport("hello a second time")
        self._ready(worker, hello)
        return self._observation.hello(hello, worker.skip)

    def _ready(self, worker: Worker, hello: wire.Hello) -> None:
        worker.take(WorkerTrigger.HELLO)
        worker.due_s = loop_time_s()
        self._expect(worker, hello.devices)
        self._readings.forget()

    def _reply(self, worker: Worker, reply: wire.Reply) -> Sequence[Input]:
        now_s = loop_time_s()
        if not worker.lateness.answer(reply.id, reply.device, now_s):
            raise InvalidReport(f"an answer of {reply.device} to poll {reply.id}, which was not asked")
        if not worker.lateness.expects(reply.device):
            return ()
        statistics = self._statistics
        statistics.polls += 1
        statistics.poll_failures += bool(reply.error)
        statistics.answers[reply.device] = (reply.took_ns / 1e9, not reply.error)
        if reply.error:
            statistics.readings.pop(reply.device, None)
        elif reply.measured:
            statistics.readings[reply.device] = reply.readings
        if reply.device in self._observation.resting:
            return self._observation.reply(reply)
        # Before what the reply makes of the source: once that observes again, time-outs are judged.
        edges: Sequence[Input] = ()
        if reply.measured:
            edges = self._readings.take(reply.device, reply.readings, round(now_s * 1e9))
        kept = self._baselines.take(reply, self._observation.listed)
        return [*edges, *kept, *self._observation.reply(reply)]

    def _expect(self, worker: Worker, devices: Sequence[wire.Device]) -> None:
        worker.expect(devices)
        statistics, expected = self._statistics, worker.lateness.expected
        readings, answers = statistics.readings, statistics.answers
        statistics.readings = {name: readings[name] for name in expected if name in readings}
        statistics.answers = {name: answers[name] for name in expected if name in answers}


@dataclass(slots=True)
class Statistics:
    """What a supervisor counts; all since its start. ``answers`` are the last of each device: how long its
    call took, in seconds, and whether it succeeded.
    """

    spawned: int = 0
    polls: int = 0
    poll_failures: int = 0
    answers: dict[str, tuple[float, bool]] = field(default_factory=dict)
    records_lost: int = 0
    garbled: int = 0
    readings: dict[str, Mapping[str, float]] = field(default_factory=dict)
