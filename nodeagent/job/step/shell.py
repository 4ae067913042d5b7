"""The loop of a step as a process: what happens is given to the pure loop, and what that orders is done.

Outcomes are looked for once the scheduler's step has ended, each by its name. It decides nothing.
"""

from __future__ import annotations

import selectors
import subprocess
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from nodeagent.job.counts import run_state
from nodeagent.job.inputs import Signalled
from nodeagent.job.orders import Keep, Print
from nodeagent.job.shell.clock import now_ns, seconds
from nodeagent.job.shell.disk.state import State as Place
from nodeagent.job.shell.messages import print_message
from nodeagent.job.shell.processes import received_signals
from nodeagent.job.shell.processes.received_signals import Signals
from nodeagent.job.step import slurm
from nodeagent.job.step.folder import Folder
from nodeagent.job.step.loop import Phase, State, decide
from nodeagent.job.step.model import Allocated, Ask, Began, End, Ended, Given, Leave, Plan, Run, Wait, Waited
from nodeagent.job.step.scheduler import Scheduler
from nodeagent.job.step.verdict import all_done
from nodeagent.job.step.whole_job_hang import WholeJobHang

Command = Callable[[int], tuple[str, ...]]
"""The command line of each node's supervisor, by the number of the run."""


class Shell:
    def __init__(
        self,
        signals: Signals,
        scheduler: Scheduler,
        place: Place,
        command: Command,
        *,
        key: str,
        period_s: float,
    ) -> None:
        """``key`` is the job's, in the file of counts. ``period_s``: so often the words of the nodes on a
        hang are read.
        """
        self._signals = signals
        self._scheduler = scheduler
        self._place = place
        self._folder = Folder(place.folder)
        self._command = command
        self._key = key
        self._period_s = period_s
        self._state = State()
        self._waiting: deque[Given] = deque()
        self._starter: subprocess.Popen[bytes] | None = None
        self._plan: Plan | None = None
        self._left: Leave | None = None
        self._do: Final[Mapping[type, Callable[[Any], None]]] = {
            Ask: lambda _: self._ask(),
            Run: lambda order: self._run(order.plan),
            End: lambda _: self._end(),
            Wait: lambda order: self._wait(order.seconds),
            Keep: self._keep,
            Print: lambda order: print_message(order.text),
            Leave: self._leave,
        }

    def run(self, began: Began) -> int:
        """Until the loop leaves; its status."""
        self._give(began)
        while self._left is None:
            self._follow()
        if self._left.status and self._state.signal is None:
            print_message(f"leaves with status {self._left.status}: {self._left.why}")
        return self._left.status

    def _give(self, given: Given) -> None:
        """What follows from an order is given after all orders of the step are done."""
        self._waiting.append(given)
        if len(self._waiting) > 1:
            return
        while self._waiting:
            self._state, orders = decide(self._state, self._waiting[0])
            for order in orders:
                self._do[type(order)](order)
            self._waiting.popleft()

    # ------------------------------------------------------------------ while a run goes on

    def _follow(self) -> None:
        """Until the scheduler's step is over."""
        starter, plan = self._starter, self._plan
        assert starter is not None, self._state
        assert plan is not None, self._state
        together = WholeJobHang(plan.nodes)
        due_s = seconds(now_ns()) + self._period_s
        while starter.poll() is None:
            self._pause(max(0.0, due_s - seconds(now_ns())))
            if seconds(now_ns()) >= due_s:
                due_s = seconds(now_ns()) + self._period_s
                self._judge(together, plan)
        self._starter = None
        self._ended(plan, starter.returncode)

    def _judge(self, together: WholeJobHang, plan: Plan) -> None:
        found = {each: self._folder.word(plan.run, each) for each in plan.nodes}
        words = {node: word for node, word in found.items() if word is not None}
        finding = together.received(words, seconds(now_ns()))
        if finding is None:
            return
        print_message(f"run {plan.run}: {finding.what.value}: {finding.why}")
        try:
            self._folder.put_finding(plan.run, finding)
        except OSError as error:
            print_message(f"{error.filename}: {error.strerror}; the nodes are not told of it")

    def _ended(self, plan: Plan, status: int) -> None:
        """A run has ended. If it is done, or is not to be made again, the scheduler is asked nothing."""
        found = {each: self._folder.outcome(plan.run, each) for each in plan.nodes}
        outcomes = {node: outcome for node, outcome in found.items() if outcome is not None}
        allocated: Allocated | None = Allocated(nodes=plan.nodes)
        if not all_done(plan.nodes, outcomes) and self._state.signal is None:
            allocated = self._scheduler.allocated(self._paused)
        self._give(
            Ended(
                run=plan.run,
                status=_as_shell(status),
                outcomes=outcomes,
                nodes=plan.nodes if allocated is None else allocated.nodes,
                ends=allocated is not None and allocated.ends,
            )
        )

    def _pause(self, within_s: float) -> bool:
        """Until something has happened, or so long. True if somebody wants the job to end."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._signals, selectors.EVENT_READ)
            selector.select(within_s)
        for number in self._signals.take():
            if number in received_signals.ENDING:
                self._give(Signalled(number=number))
            elif number in slurm.PASSED_ON and self._starter is not None:
                self._starter.send_signal(number)
        waiting = any(isinstance(each, Signalled) for each in self._waiting)
        return waiting or self._state.signal is not None or self._state.phase is Phase.LEFT

    def _paused(self, within_s: float) -> bool:
        """So long, also where a child ends meanwhile, or until somebody wants the job to end: then True."""
        end_s = seconds(now_ns()) + within_s
        while (left_s := end_s - seconds(now_ns())) > 0:
            if self._pause(left_s):
                return True
        return False

    # ------------------------------------------------------------------ what is ordered

    def _ask(self) -> None:
        allocated = self._scheduler.allocated(self._paused)
        if allocated is not None:
            self._give(allocated)

    def _run(self, plan: Plan) -> None:
        """What cannot be begun is a run of which no node says anything."""
        self._plan = plan
        try:
            self._folder.put_plan(plan)
            self._starter = self._scheduler.start(plan.nodes, self._command(plan.run))
        except OSError as error:
            print_message(f"{error.filename}: {error.strerror}; run {plan.run} cannot be begun")
            self._ended(plan, 1)

    def _end(self) -> None:
        if self._starter is not None:
            self._starter.send_signal(slurm.ENDING)

    def _wait(self, within_s: float) -> None:
        if not self._paused(within_s):
            self._give(Waited())

    def _keep(self, order: Keep) -> None:
        try:
            self._place.put_counts(run_state.encode(order.counts, job=self._key))
        except OSError as error:
            print_message(f"{self._place.counts}: {error.strerror}; the next run will not know these counts")

    def _leave(self, order: Leave) -> None:
        self._left = order


def _as_shell(status: int) -> int:
    """128 + N of a signal."""
    return status if status >= 0 else 128 - status
