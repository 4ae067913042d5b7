"""Puts the parts of one supervisor together, from the command line, the environment and what is on the disk.

Only what stands in the way of the job's policy keeps a command from being run. Where the supervisor itself is
hindered (no folder for its state, no socket for beats), it says so and runs the command all the same.
"""

from __future__ import annotations

import os
import selectors
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nodeagent import __version__
from nodeagent.job.hang.settings import Settings
from nodeagent.job.model import Began, Policy
from nodeagent.job.policy import environment as variables
from nodeagent.job.policy.arguments import Arguments
from nodeagent.job.session import journal_records
from nodeagent.job.shell.clock import now_ns, seconds
from nodeagent.job.shell.disk import state
from nodeagent.job.shell.disk.journal import Journal, JournalError, Owner
from nodeagent.job.shell.disk.record import Record
from nodeagent.job.shell.disk.recovery import Recovered, counts_of, recover
from nodeagent.job.shell.disk.state import State, StateError
from nodeagent.job.shell.evidence.gathering import Gathering
from nodeagent.job.shell.link import Link, Lost, socket_path
from nodeagent.job.shell.processes import command, prctl, procfs
from nodeagent.job.shell.processes.runner import Runner
from nodeagent.job.shell.processes.signals import Signals
from nodeagent.job.shell.processes.tree import Tree, survivors_of
from nodeagent.job.shell.supervisor import Supervisor
from nodeagent.job.shell.told import tell
from nodeagent.job.shell.watching.beats import VARIABLE, BeatSocket
from nodeagent.job.shell.watching.ring import Ring
from nodeagent.job.shell.watching.watching import Watching

if TYPE_CHECKING:
    from nodeagent.job.lines import Hello, Welcome
    from nodeagent.job.shell.link import Heard
    from nodeagent.job.shell.watching.progress_reader import ProgressReader


class NotBegun(Exception):
    """What the user has given keeps the command from being run. The text says what, a line each."""


def run(given: Arguments, environment: Mapping[str, str]) -> int:
    """Until the supervisor leaves; its status. Raises ``NotBegun``."""
    signals = Signals()
    _become_subreaper()
    tree = Tree()
    link = Link(socket_path(given.socket, environment), lambda: _hello(given))
    heard = _welcomed(link)
    policy = _policy(given, environment, heard)
    if not given.core and not policy.only_watches:
        command.forbid_cores()
    place = _place(given, environment)
    try:
        return _supervise(given, environment, _Parts(signals, tree, link, heard, policy, place))
    finally:
        link.close()
        if place is not None:
            _close(place)


def _become_subreaper() -> None:
    try:
        prctl.become_subreaper()
    except OSError as error:  # a filter of system calls
        tell(f"{error.strerror}; processes that leave their parent are not found")


@dataclass(frozen=True, slots=True)
class _Parts:
    signals: Signals
    tree: Tree
    link: Link
    heard: list[Heard]
    policy: Policy
    place: State | None


def _supervise(given: Arguments, environment: Mapping[str, str], parts: _Parts) -> int:
    place, tree = parts.place, parts.tree
    journal = _journal(place, given)
    beats = _beats(place, environment)
    recovered = _recovered(journal, beats)
    key = given.job or environment.get("SLURM_JOB_ID", "")
    record = Record(place, journal, job=key, keeps_counts=place is not None and place.is_given)
    ring = Ring(None if place is None else place.folder)
    progress = _progress(given)
    counts = counts_of(place, key, environment, recovered.session)
    if progress is not None:
        counts = progress.baseline(counts)
    runner = Runner(given.command, tree, foreground=given.foreground)
    supervisor = Supervisor(
        session=recovered.session,
        record=record,
        link=parts.link,
        signals=parts.signals,
        runner=runner,
        watching=Watching(_settings(given, parts.policy), tree, ring, parts.link.ask, progress),
        gathering=Gathering(place, tree, ring.files),
        beats=beats,
    )
    began = Began(boot_id=procfs.boot_id(), policy=parts.policy, counts=counts, survivors=recovered.survivors)
    if recovered.has_left(counts):
        status = supervisor.leave_again(recovered.reports)
    else:
        record.keep(counts)
        try:
            status = supervisor.run(began, parts.heard, recovered.reports)
        except Exception:  # a defect of ours ends no job: what can still be done is to wait for it
            if runner.process is None:
                raise
            import traceback

            tell(f"a defect of the supervisor; it only waits for the command now: {traceback.format_exc()}")
            return runner.wait_alone(parts.signals)
    record.finish()
    if beats is not None:
        beats.close()
    return status


def _settings(given: Arguments, policy: Policy) -> Settings:
    try:
        return Settings(
            hang_time_s=policy.hang_time_s, period_s=given.period_s, kind=policy.kind, mode=policy.hang
        )
    except ValueError as error:
        raise NotBegun(f"--period: {error}") from error


def _progress(given: Arguments) -> ProgressReader | None:
    if not given.progress:
        return None
    from nodeagent.job.shell.watching.progress_reader import ProgressReader

    return ProgressReader(given.progress)


def _policy(given: Arguments, environment: Mapping[str, str], heard: list[Heard]) -> Policy:
    welcome = _welcome_of(heard)
    if welcome is None and _nobody_says(given, environment):
        return Policy()
    from nodeagent.job.policy.policy import PolicyError
    from nodeagent.job.shell.disk.settled import Unreadable, settle

    try:
        resolved = settle(given, environment, welcome)
    except (Unreadable, PolicyError) as error:
        raise NotBegun(str(error)) from error
    for note in resolved.notes:
        tell(note)
    return resolved.policy


def _welcome_of(heard: list[Heard]) -> Welcome | None:
    if all(isinstance(each, Lost) for each in heard):
        return None
    from nodeagent.job.lines import Welcome

    return next((each for each in heard if isinstance(each, Welcome)), None)


def _nobody_says(given: Arguments, environment: Mapping[str, str]) -> bool:
    """What may be done to the job: then the policy and all that reads it need not be loaded."""
    named = (name.startswith(variables.OF_THE_POLICY) for name in environment)
    return not (given.flags or given.policy_file or given.annotations_file or any(named))


def _journal(place: State | None, given: Arguments) -> Journal | None:
    if place is None:
        return None
    boot_id = procfs.boot_id()
    if not boot_id:
        tell(
            "/proc does not tell the boot of the machine; a supervisor started anew will not know of this run"
        )
        return None
    try:
        return Journal(place.journal, Owner(boot_id, given.job, given.command))
    except JournalError as error:
        tell(f"{error}; a supervisor that is started anew will not know of this run")
        return None


def _recovered(journal: Journal | None, beats: BeatSocket | None) -> Recovered:
    """A journal that cannot be understood is told, and kept beside: the job begins as if there were none."""
    if journal is None or not journal.earlier:
        return Recovered()
    marker = None if beats is None else (VARIABLE, beats.path)
    try:
        return recover(journal.earlier, marker)
    except journal_records.JournalError as error:
        tell(f"{journal.path}: {error}, counted behind its head; it is moved aside, and the job begins anew")
        try:
            journal.begin_anew()
        except JournalError as failed:
            tell(f"{failed}; a supervisor that is started anew will not know of this run")
        return Recovered(survivors=survivors_of(None, marker))


def _place(given: Arguments, environment: Mapping[str, str]) -> State | None:
    """A folder that was asked for is needed; the usual one only serves."""
    if given.state:
        try:
            return state.open_given(Path(given.state), environment)
        except StateError as error:
            raise NotBegun(f"--state: {error}") from error
    try:
        return state.open_default(given.job, given.command, environment)
    except StateError as error:
        tell(f"{error}; nothing is kept of this run")
        return None


def _close(place: State) -> None:
    try:
        place.close()
    except OSError as error:
        tell(f"{error.filename}: {error.strerror}; it stays behind")


def _beats(place: State | None, environment: Mapping[str, str]) -> BeatSocket | None:
    if place is None:
        return None
    path = ""
    try:
        path = place.beat_path(environment)
        return BeatSocket(path)
    except OSError as error:
        tell(f"{path or error.filename}: {error.strerror}; beats of the program are not received")
        return None


def _hello(given: Arguments) -> Hello:
    from nodeagent.job.lines import Hello

    return Hello(pid=os.getpid(), version=__version__, job=given.job)


def _welcomed(link: Link) -> list[Heard]:
    """What the daemon says first: a welcome with what the site has set, or that there is none."""
    heard = link.tick(now_ns())
    while not heard and (descriptor := link.fileno()) is not None:
        due_ns = link.next_deadline_ns()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, link.events)
            selector.select(None if due_ns is None else max(0.0, seconds(due_ns - now_ns())))
        heard = [*link.ready(now_ns()), *link.tick(now_ns())]
    return heard
