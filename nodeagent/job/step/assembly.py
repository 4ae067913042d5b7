"""Puts the loop of a step together, from the command line, the environment and what lies in STATE.

What the user has given wrong is found before anything runs.
"""

from __future__ import annotations

import select
import shutil
import signal
import sys
import zipimport
from collections.abc import Mapping
from pathlib import Path

from nodeagent.job.model import Policy
from nodeagent.job.policy.arguments import Arguments
from nodeagent.job.policy.policy import PolicyError
from nodeagent.job.session.session import Session
from nodeagent.job.shell.assembly import NotBegun
from nodeagent.job.shell.clock import now_ns, seconds
from nodeagent.job.shell.disk import state
from nodeagent.job.shell.disk.policy_files import Unreadable, settle
from nodeagent.job.shell.disk.recovery import counts_of
from nodeagent.job.shell.disk.state import State, StateError
from nodeagent.job.shell.processes.received_signals import ENDING, Signals
from nodeagent.job.step import slurm
from nodeagent.job.step.arguments import StepArguments, words_of_run
from nodeagent.job.step.folder import Folder
from nodeagent.job.step.model import Began, Wish
from nodeagent.job.step.scheduler import Scheduler
from nodeagent.job.step.shell import Shell


def run(given: StepArguments, environment: Mapping[str, str]) -> int:
    """Until the loop leaves; its status. Raises ``NotBegun``."""
    signals = Signals()
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
    given: StepArguments, environment: Mapping[str, str], policy: Policy, place: State, signals: Signals
) -> int:
    scheduler = Scheduler(environment)
    allocated = scheduler.allocated(lambda within_s: _is_ended(signals, within_s))
    if allocated is None:
        return 128 + signal.SIGTERM
    wish = _wish(given, policy, len(allocated.nodes))
    key = given.of_run.job or environment[slurm.JOB_VARIABLE]
    program = _program()
    shell = Shell(
        signals,
        scheduler,
        place,
        lambda run: (*program, *words_of_run(given.of_run, run)),
        key=key,
        period_s=given.of_run.period_s,
    )
    counts = counts_of(place, key, environment, Session())
    first_run = Folder(place.folder).next_run()
    return shell.run(Began(wish=wish, nodes=allocated.nodes, first_run=first_run, counts=counts))


def _policy(given: Arguments, environment: Mapping[str, str]) -> Policy:
    """Without what the site has set: that the daemon of each node sends to its supervisor."""
    try:
        return settle(given, environment, None).policy
    except (Unreadable, PolicyError) as error:
        raise NotBegun(str(error)) from error


def _place(given: Arguments) -> State:
    try:
        return state.open_alone(Path(given.state))
    except StateError as error:
        raise NotBegun(f"--state: {error}") from error


def _wish(given: StepArguments, policy: Policy, has: int) -> Wish:
    for option, count in (("--nodes", given.nodes), ("--min-nodes", given.min_nodes)):
        if count is not None and count > has:
            raise NotBegun(f"{option}: at most the {has} nodes of the job, not {count}")
    return Wish(
        nodes=given.nodes,
        at_least=given.min_nodes,
        reruns=not policy.only_watches or given.min_nodes is not None,
        placements=policy.placements,
    )


def _program() -> tuple[str, ...]:
    """How each node calls what this process was called by: the one file, the module, or ``nodeagent job``."""
    loader = getattr(sys.modules[__name__], "__loader__", None)
    if isinstance(loader, zipimport.zipimporter):
        return sys.executable, str(Path(loader.archive).resolve())
    if Path(sys.argv[0]).name == "__main__.py":
        return sys.executable, "-m", "nodeagent.job"
    return str(Path(sys.argv[0]).absolute()), "job"


def _is_ended(signals: Signals, within_s: float) -> bool:
    """Waits so long, also where a child ends meanwhile, or until somebody wants the job to end: then True."""
    end_s = seconds(now_ns()) + within_s
    while (left_s := end_s - seconds(now_ns())) > 0:
        select.select([signals], [], [], left_s)
        if any(number in ENDING for number in signals.take()):
            return True
    return False
