"""The loop of one supervisor: it gives what happens to the session, and does the effects.

Each input is in the journal before its effects are done. It decides nothing itself.
"""

from __future__ import annotations

import selectors
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from nodeagent.job.model import SECOND_NS, ExitStatus, RunReport, RunRequest
from nodeagent.job.session.session import JobSession
from nodeagent.job.session.state import DaemonLinkState
from nodeagent.job.session.values import (
    Emptied,
    Gather,
    KeepCounts,
    Kill,
    Leave,
    LinkBack,
    LinkLost,
    Print,
    SessionBegan,
    SessionEffect,
    SessionInput,
    SessionTick,
    Signalled,
    Start,
    Terminate,
)
from nodeagent.job.shell import loop
from nodeagent.job.shell.command import CommandRunner
from nodeagent.job.shell.link import ConnectionLost, DaemonLink
from nodeagent.job.shell.loop import LoopRunner, ReceivedSignals, now_ns, seconds
from nodeagent.job.shell.record import SupervisorRecord
from nodeagent.job.shell.run_checks import RunChecks
from nodeagent.job.shell.standard_error import print_message
from nodeagent.job.watching.beats import BeatSocket
from nodeagent.job.watching.evidence import Gathering
from nodeagent.job.watching.watching import Watching

if TYPE_CHECKING:
    from nodeagent.job.lines import ChipReadings, JobBegin, ReportTaken, Welcome
    from nodeagent.job.shell.link import Received

LAST_WORDS_NS: Final = 2 * SECOND_NS
"""So long a supervisor that leaves waits for the daemon to take its reports."""

HELD_WORDS_NS: Final = 12 * SECOND_NS
"""If it leaves because the node is out of service, the daemon may wait 10 s for the node to be drained."""

BETWEEN_BEATS_NS: Final = SECOND_NS // 10
MAX_BEATS_BETWEEN: Final = 64
"""After so many beats the rest waits until that time is over: a program that sends one a microsecond costs no
more. Fewer are read at once, because the socket may take only ten (unix(7), max_dgram_qlen), and all ranks
report a step at the same moment.
"""


class JobSupervisor:
    def __init__(
        self,
        session: JobSession,
        record: SupervisorRecord,
        link: DaemonLink,
        signals: ReceivedSignals,
        runner: CommandRunner,
        watching: Watching,
        gathering: Gathering,
        beats: BeatSocket | None,
        checks: RunChecks,
    ) -> None:
        self._session = session
        self._record = record
        self._link = link
        self._signals = signals
        self._runner = runner
        self._watching = watching
        self._gathering = gathering
        self._beats = beats
        self._checks = checks
        self._beats_due_ns = 0
        self._beats_since_ns = 0
        self._beats_read = 0
        self.left: Leave | None = None
        """What the session has left with, once it has."""

        self._effects: Final[Mapping[type, Callable[[Any], None]]] = {
            Start: self._start,
            Terminate: self._terminate,
            Kill: self._kill,
            Gather: self._gather,
            RunReport: lambda effect: self._link.send(effect, now_ns()),
            KeepCounts: lambda effect: self._record.keep(effect.counts),
            Print: lambda effect: print_message(effect.text),
            Leave: self._leave,
        }
        self._loop = LoopRunner(self._step, self._effects, lambda: (*self._runner.take(), *checks.take()))

    def run(self, began: SessionBegan, received: list[Received], reports: Iterable[RunReport]) -> int:
        """Until the session leaves; its status. ``received`` is what the daemon has sent already, ``reports``
        what an earlier supervisor had to report.
        """
        for report in reports:
            self._link.send(report, now_ns())
        self._runner.adopt(began.survivors, now_ns())
        self._loop.give(began)
        self._hear(received)
        while self.left is None:
            self._turn()
        self._say_goodbye(self.left)
        return self.left.status

    def leave_again(self, reports: Iterable[RunReport]) -> int:
        """An earlier supervisor had left, and was ended before it could exit. Its status."""
        for effect in (*reports, *self._session.leave_again()):
            self._effects[type(effect)](effect)
        assert self.left is not None
        print_message(
            f"the job had come to its end with status {self.left.status} before its supervisor was ended"
        )
        self._say_goodbye(self.left)
        return self.left.status

    # ------------------------------------------------------------------ one turn

    def _turn(self) -> None:
        self._wait()
        at_ns = now_ns()
        self._take_signals()
        self._take_ended()
        self._hear(self._link.ready(at_ns))
        self._hear(self._link.tick(at_ns))
        self._take_beats(at_ns)
        for part in (self._runner, self._watching, self._gathering, self._checks):
            part.tick(at_ns)
        self._run_what_is_ready()
        self._give_found()
        self._send_to_subscribers()
        due_ns = self._session.next_deadline_ns()
        if due_ns is not None and due_ns <= at_ns:
            self._loop.give(SessionTick())

    def _wait(self) -> None:
        """Until something can be read, or something is due."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._signals, selectors.EVENT_READ)
            if (connection := self._link.fileno()) is not None:
                selector.register(connection, self._link.events)
            due_ns = self._next_deadline_ns()
            if self._beats is not None:
                if now_ns() >= self._beats_due_ns:
                    selector.register(self._beats, selectors.EVENT_READ)
                else:
                    due_ns = min(due_ns or self._beats_due_ns, self._beats_due_ns)
            selector.select(None if due_ns is None else max(0.0, seconds(due_ns - now_ns())))

    def _next_deadline_ns(self) -> int | None:
        parts = (self._session, self._link, self._runner, self._watching, self._gathering, self._checks)
        return min((due for part in parts if (due := part.next_deadline_ns()) is not None), default=None)

    def _take_signals(self) -> None:
        for number in self._signals.take():
            if number in loop.ENDING:
                self._loop.give(Signalled(number=number))
            elif number in loop.PASSED_ON:
                self._runner.pass_on(number)

    def _take_ended(self) -> None:
        for pid in self._runner.reap():
            self._gathering.ended(pid)
            self._checks.ended(pid)
        self._runner.look()
        if not self._runner.command_lives:
            self._watching.ended()
            self._beats_due_ns = 0
            self._take_beats(now_ns())  # what it sent before its end comes before its end
        self._give_found()

    def _take_beats(self, at_ns: int) -> None:
        beats = self._beats
        if beats is None or at_ns < self._beats_due_ns:
            return
        bad_before, subscriptions_before = beats.bad, beats.subscriptions
        found = beats.take(seconds(at_ns))
        if beats.bad and not bad_before:
            print_message(f"a beat of the program cannot be read (reported once): {beats.last_bad}")
        count = len(found) + beats.bad - bad_before + beats.subscriptions - subscriptions_before
        if count:
            self._watching.beaten(found, at_ns)
            self._pace_beats(count, at_ns)

    def _pace_beats(self, count: int, at_ns: int) -> None:
        if at_ns - self._beats_since_ns >= BETWEEN_BEATS_NS:
            self._beats_since_ns, self._beats_read = at_ns, 0
        self._beats_read += count
        if self._beats_read >= MAX_BEATS_BETWEEN:
            self._beats_due_ns = self._beats_since_ns + BETWEEN_BEATS_NS

    def _send_to_subscribers(self) -> None:
        if self._beats is not None:
            state = self._session.state
            is_known = state.link is DaemonLinkState.UP and state.is_fresh
            self._beats.send(state.wanted if is_known else None)

    def _give_found(self) -> None:
        """What a run has done comes before its end, so that its end is judged by it."""
        for part in (self._watching, self._gathering, self._checks, self._runner):
            for given in part.take():
                if isinstance(given, Emptied):
                    self._give_last_progress()
                self._loop.give(given)

    def _give_last_progress(self) -> None:
        state = self._session.state
        if self.left is None and state.role.acts and not state.is_reported:
            for given in self._watching.last_progress(is_whole=self._runner.ended_by_itself):
                self._loop.give(given)

    # ------------------------------------------------------------------ the session

    def _step(self, given: SessionInput) -> Iterable[SessionEffect]:
        """The input is in the journal before its effects are done."""
        at_ns = now_ns()
        if self._session.is_written(at_ns, given):
            self._record.write(at_ns, given)
        return self._session.step(at_ns, given)

    def _start(self, effect: Start) -> None:
        self._checks.begin(effect, self._session.state.policy, now_ns())
        self._run_what_is_ready()

    def _run_what_is_ready(self) -> None:
        effect = self._checks.take_ready(now_ns())
        if effect is None:
            return
        self._watching.begins()
        beat = {} if self._beats is None else {"NODEAGENT_BEAT": self._beats.path}
        self._runner.start(effect.run, {**effect.environment, **beat}, self._record.folder_of(effect.run))
        if self._runner.process is not None and self._runner.is_running:
            start = self._session.state.counts.start
            self._watching.began(effect.run, self._runner.process, now_ns(), start)

    def _terminate(self, effect: Terminate) -> None:
        if self._checks.call_off():
            return
        if effect.alone:
            self._runner.pass_on(effect.number)
        else:
            self._runner.terminate(effect.run, effect.number)

    def _kill(self, effect: Kill) -> None:
        if not self._checks.call_off():
            self._runner.kill(effect.run, now_ns())

    def _gather(self, effect: Gather) -> None:
        self._gathering.begin(effect, self._watching.ranks(), self._runner.written, now_ns())

    def _leave(self, effect: Leave) -> None:
        self.left = effect

    # ------------------------------------------------------------------ the daemon

    def _hear(self, received: list[Received]) -> None:
        for each in received:
            if isinstance(each, ConnectionLost):
                self._lost(each)
            else:
                self._hear_line(each)

    def _hear_line(self, line: Welcome | RunRequest | ChipReadings | ReportTaken) -> None:
        from nodeagent.job.lines import ChipReadings, Welcome

        if isinstance(line, Welcome):
            self._loop.give(LinkBack(job=line.job))
            self._link.begin(self._begin(), now_ns())
        elif isinstance(line, RunRequest):
            self._loop.give(line)
        elif isinstance(line, ChipReadings):
            self._watching.answered(line, now_ns())
            self._checks.answered(line)

    def _lost(self, lost: ConnectionLost) -> None:
        """Given once, not at each attempt that fails."""
        if self._session.state.link is not DaemonLinkState.DOWN:
            self._loop.give(LinkLost(why=lost.why))

    def _begin(self) -> JobBegin:
        from nodeagent.job.lines import JobBegin

        state = self._session.state
        policy = state.policy
        return JobBegin(
            kind=policy.kind,
            run=max(1, state.run),
            is_running=self._runner.is_running,
            in_place=policy.in_place,
            yields=policy.yields,
            reschedules=policy.placements is not None,
            strategy=policy.strategy,
        )

    def _say_goodbye(self, leave: Leave) -> None:
        """Nobody waits for a daemon that is not there, or is slow."""
        if not self._link.is_welcome:
            return
        from nodeagent.job.lines import Bye

        bye = Bye(number=self._session.state.reports + 1, status=leave.status, why=leave.why)
        self._link.send(bye, now_ns())
        is_held = leave.status == ExitStatus.RESCHEDULE_ISOLATED
        end_ns = now_ns() + (HELD_WORDS_NS if is_held else LAST_WORDS_NS)
        while self._link.has_untaken and (at_ns := now_ns()) < end_ns:
            connection = self._link.fileno()
            if connection is None or not self._link.is_welcome:
                return
            with selectors.DefaultSelector() as selector:
                selector.register(connection, self._link.events)
                selector.register(self._signals, selectors.EVENT_READ)
                selector.select(seconds(end_ns - at_ns))
            is_ended = any(number in loop.ENDING for number in self._signals.take())
            if is_held and is_ended:
                return
            self._link.ready(now_ns())
