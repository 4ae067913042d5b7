"""The process of ``job step``: put together from the command line, the environment and the folder of
``--state``.

It gives what happens to the pure loop and does the effects. The outcomes of the nodes are read once the
scheduler's step has ended, each by its name. It decides nothing. A wrong option is found before anything
runs.
"""

from __future__ import annotations

import select
import selectors
import shutil
import signal
import subprocess
import sys
import zipimport
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from nodeagent.job.model import Policy
from nodeagent.job.policy.arguments import Arguments
from nodeagent.job.policy.policy import PolicyError, PolicyFileError, settle
from nodeagent.job.session.session import JobSession
from nodeagent.job.session.values import KeepCounts, Leave, Print, Signalled
from nodeagent.job.shell import record, state_folder
from nodeagent.job.shell.assembly import NotBegun
from nodeagent.job.shell.loop import ENDING, LoopRunner, ReceivedSignals, now_ns, seconds
from nodeagent.job.shell.record import counts_of
from nodeagent.job.shell.standard_error import print_message
from nodeagent.job.shell.state_folder import StateFolder, StateFolderError
from nodeagent.job.shell.state_lifetime import ends_early
from nodeagent.job.step import slurm
from nodeagent.job.step.arguments import StepArguments, words_of_run
from nodeagent.job.step.decision import all_done
from nodeagent.job.step.folder import StepFolder
from nodeagent.job.step.loop import StepPhase, StepState, step
from nodeagent.job.step.slurm import Scheduler
from nodeagent.job.step.values import (
    Allocated,
    AskScheduler,
    EndRun,
    RunPlan,
    StartRun,
    StepBegan,
    StepEffect,
    StepEnded,
    StepInput,
    StepOptions,
    Wait,
    Waited,
)
from nodeagent.job.step.whole_job_hang import WholeJobHang
from nodeagent.job.step.whole_job_slow import WholeJobSlow, names

RunCommand = Callable[[int], tuple[str, ...]]
"""The command line of each node's supervisor, by the number of the run."""


class StepProcess:
    def __init__(
        self,
        signals: ReceivedSignals,
        scheduler: Scheduler,
        place: StateFolder,
        command: RunCommand,
        *,
        key: str,
        period_s: float,
    ) -> None:
        """``key`` is the job's, in the file of counts. ``period_s``: how often the reports of the nodes on a
        hang are read.
        """
        self._signals = signals
        self._scheduler = scheduler
        self._place = place
        self._folder = StepFolder(place.folder)
        self._command = command
        self._key = key
        self._period_s = period_s
        self._state = StepState()
        self._starter: subprocess.Popen[bytes] | None = None
        self._plan: RunPlan | None = None
        self._left: Leave | None = None
        effects: Final[Mapping[type, Callable[[Any], None]]] = {
            AskScheduler: lambda _: self._ask(),
            StartRun: lambda effect: self._run(effect.plan),
            EndRun: lambda _: self._end(),
            Wait: lambda effect: self._wait(effect.seconds),
            KeepCounts: self._keep,
            Print: lambda effect: print_message(effect.text),
            Leave: self._leave,
        }
        self._loop = LoopRunner(self._step, effects)

    def run(self, began: StepBegan) -> int:
        """Until the loop leaves; its status."""
        self._loop.give(began)
        while self._left is None:
            self._follow()
        if self._left.status and self._state.signal is None:
            print_message(f"leaves with status {self._left.status}: {self._left.why}")
        return self._left.status

    def _step(self, given: StepInput) -> Iterable[StepEffect]:
        self._state, effects = step(self._state, given)
        return effects

    # ------------------------------------------------------------------ while a run goes on

    def _follow(self) -> None:
        """Until the scheduler's step is over."""
        starter, plan = self._starter, self._plan
        assert starter is not None, self._state
        assert plan is not None, self._state
        together, slow = WholeJobHang(plan.nodes), WholeJobSlow()
        due_s = seconds(now_ns()) + self._period_s
        while starter.poll() is None:
            self._pause(max(0.0, due_s - seconds(now_ns())))
            if seconds(now_ns()) >= due_s:
                due_s = seconds(now_ns()) + self._period_s
                self._judge(together, plan)
                self._find_slow(slow, plan)
        self._starter = None
        self._ended(plan, starter.returncode)

    def _judge(self, together: WholeJobHang, plan: RunPlan) -> None:
        found = {each: self._folder.hang_report(plan.run, each) for each in plan.nodes}
        reports = {node: report for node, report in found.items() if report is not None}
        finding = together.received(reports, seconds(now_ns()))
        if finding is None:
            return
        print_message(f"run {plan.run}: {finding.what.value}: {finding.why}")
        try:
            self._folder.put_finding(plan.run, finding)
        except OSError as error:
            print_message(f"{error.filename}: {error.strerror}; the nodes do not learn of it")

    def _find_slow(self, slow: WholeJobSlow, plan: RunPlan) -> None:
        found = {each: self._folder.step_times(plan.run, each) for each in plan.nodes}
        reports = {node: report for node, report in found.items() if report is not None}
        finding = slow.received(reports)
        if finding is None:
            return
        for node in plan.nodes:
            ranks = len({time.rank for time in reports[node].times}) if node in reports else 0
            for who, behind in names(finding, node, ranks).items():
                where = "" if who == f"node {node}" else f" on {node}"
                print_message(f"run {plan.run}: {who}{where} holds up its peers: {behind[0].described()}")
        if not finding.slow:
            print_message(f"run {plan.run}: no rank holds up the others any more")
        try:
            self._folder.put_slow(plan.run, finding)
        except OSError as error:
            print_message(f"{error.filename}: {error.strerror}; the nodes do not learn which rank is slow")

    def _ended(self, plan: RunPlan, status: int) -> None:
        """A run has ended. If it is done, or is not to be made again, the scheduler is asked nothing."""
        found = {each: self._folder.outcome(plan.run, each) for each in plan.nodes}
        outcomes = {node: outcome for node, outcome in found.items() if outcome is not None}
        allocated: Allocated | None = Allocated(nodes=plan.nodes)
        if not all_done(plan.nodes, outcomes) and self._state.signal is None:
            allocated = self._scheduler.allocated(self._paused)
        self._loop.give(
            StepEnded(
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
            if number in ENDING:
                self._loop.give(Signalled(number=number))
            elif number in slurm.PASSED_ON and self._starter is not None:
                self._starter.send_signal(number)
        waiting = any(isinstance(each, Signalled) for each in self._loop.waiting)
        return waiting or self._state.signal is not None or self._state.phase is StepPhase.LEFT

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
            self._loop.give(allocated)

    def _run(self, plan: RunPlan) -> None:
        """A run that cannot be started is one without any report."""
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
            self._loop.give(Waited())

    def _keep(self, effect: KeepCounts) -> None:
        try:
            self._place.put_counts(record.encode_counts(effect.counts, job=self._key))
        except OSError as error:
            print_message(f"{self._place.counts}: {error.strerror}; the next run will not know these counts")

    def _leave(self, effect: Leave) -> None:
        self._left = effect


def _as_shell(status: int) -> int:
    """128 + N of a signal."""
    return status if status >= 0 else 128 - status


def run(given: StepArguments, environment: Mapping[str, str]) -> int:
    """Until the loop leaves; its status. Raises ``NotBegun``."""
    signals = ReceivedSignals()
    if not environment.get(slurm.JOB_VARIABLE):
        raise NotBegun(f"{slurm.JOB_VARIABLE} is not set; call it in the batch script of a Slurm job")
    missing = [each for each in slurm.PROGRAMS if shutil.which(each) is None]
    if missing:
        raise NotBegun(f"{', '.join(missing)}: not found; PATH has to name where Slurm's commands are")
    policy = _policy(given.of_run, environment)
    place = _place(given.of_run)
    try:
        return _loop(given, environment, policy, place, signals)
    finally:
        place.close()


def _loop(
    given: StepArguments,
    environment: Mapping[str, str],
    policy: Policy,
    place: StateFolder,
    signals: ReceivedSignals,
) -> int:
    scheduler = Scheduler(environment)
    allocated = scheduler.allocated(lambda within_s: _is_ended(signals, within_s))
    if allocated is None:
        return 128 + signal.SIGTERM
    wish = _wish(given, policy, len(allocated.nodes))
    key = given.of_run.job or environment[slurm.JOB_VARIABLE]
    program = _program()
    shell = StepProcess(
        signals,
        scheduler,
        place,
        lambda run: (*program, *words_of_run(given.of_run, run)),
        key=key,
        period_s=given.of_run.period_s,
    )
    counts = counts_of(place, key, environment, JobSession())
    first_run = StepFolder(place.folder).next_run()
    return shell.run(StepBegan(wish=wish, nodes=allocated.nodes, first_run=first_run, counts=counts))


def _policy(given: Arguments, environment: Mapping[str, str]) -> Policy:
    """Without what the site has set: that the daemon of each node sends to its supervisor."""
    try:
        return settle(given, environment, None).policy
    except (PolicyFileError, PolicyError) as error:
        raise NotBegun(str(error)) from error


def _place(given: Arguments) -> StateFolder:
    try:
        place = state_folder.open_alone(Path(given.state))
    except StateFolderError as error:
        raise NotBegun(f"--state: {error}") from error
    if early := ends_early(place.folder):
        print_message(
            f"--state {place.folder} lies {early}: the other nodes of the job, and its next placement,"
            " may not see it; name a folder on shared storage"
        )
    return place


def _wish(given: StepArguments, policy: Policy, has: int) -> StepOptions:
    for option, count in (("--nodes", given.nodes), ("--min-nodes", given.min_nodes)):
        if count is not None and count > has:
            raise NotBegun(f"{option}: at most the {has} nodes of the job, not {count}")
    return StepOptions(
        nodes=given.nodes,
        at_least=given.min_nodes,
        reruns=policy.role.acts or given.min_nodes is not None,
        placements=policy.placements,
        replacements=policy.node_replacements,
    )


def _program() -> tuple[str, ...]:
    """How each node calls what this process was called by: the one file, the module, or ``nodeagent job``."""
    loader = getattr(sys.modules[__name__], "__loader__", None)
    if isinstance(loader, zipimport.zipimporter):
        return sys.executable, str(Path(loader.archive).resolve())
    if Path(sys.argv[0]).name == "__main__.py":
        return sys.executable, "-m", "nodeagent.job"
    return str(Path(sys.argv[0]).absolute()), "job"


def _is_ended(signals: ReceivedSignals, within_s: float) -> bool:
    """Waits so long, also where a child ends meanwhile, or until somebody wants the job to end: then True."""
    end_s = seconds(now_ns()) + within_s
    while (left_s := end_s - seconds(now_ns())) > 0:
        select.select([signals], [], [], left_s)
        if any(number in ENDING for number in signals.take()):
            return True
    return False
