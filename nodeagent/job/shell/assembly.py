"""Puts the parts of one supervisor together, from the command line, the environment and what is on the disk.

Only what stands in the way of the job's policy keeps a command from being run. Where the supervisor itself is
hindered (no folder for its state, no socket for beats), it says so and runs the command all the same.
"""

from __future__ import annotations

import os
import selectors
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodeagent import __version__
from nodeagent.job.hang.settings import Settings
from nodeagent.job.inputs import Began
from nodeagent.job.model import Counts, Policy
from nodeagent.job.policy import environment as variables
from nodeagent.job.policy.arguments import Arguments
from nodeagent.job.shell import opening
from nodeagent.job.shell.clock import now_ns, seconds
from nodeagent.job.shell.disk.record import Record
from nodeagent.job.shell.disk.recovery import counts_of, kept_counts
from nodeagent.job.shell.disk.state import State, StateError
from nodeagent.job.shell.evidence.gathering import Gathering
from nodeagent.job.shell.link import Link, Lost, socket_path
from nodeagent.job.shell.messages import print_message
from nodeagent.job.shell.processes import command, prctl, procfs
from nodeagent.job.shell.processes.received_signals import Signals
from nodeagent.job.shell.processes.runner import Runner
from nodeagent.job.shell.processes.tree import Tree
from nodeagent.job.shell.supervisor import Supervisor
from nodeagent.job.shell.watching.ring import Ring
from nodeagent.job.shell.watching.watching import Watching

if TYPE_CHECKING:
    from nodeagent.job.inputs import Process
    from nodeagent.job.lines import Hello, Welcome
    from nodeagent.job.session.session import Session
    from nodeagent.job.shell.link import Received
    from nodeagent.job.shell.watching.progress_reader import ProgressReader
    from nodeagent.job.step.member import Member
    from nodeagent.job.step.shared_hangs import SharedHangs


class NotBegun(Exception):
    """What the user has given keeps the command from being run. The text says what, a line each."""


class NoFolder(NotBegun):
    """The folder of its state cannot be used. In a step that may be of this node and of this moment alone:
    the loop is told nothing, and tries again.
    """


def run(given: Arguments, environment: Mapping[str, str]) -> int:
    """Until the supervisor leaves; its status. Raises ``NotBegun``."""
    signals = Signals()
    member = _member(given, environment)
    try:
        return _run(given, environment, signals, member)
    except NotBegun as error:
        if member is not None and not isinstance(error, NoFolder):
            member.not_begun(str(error))
        raise


def _run(given: Arguments, environment: Mapping[str, str], signals: Signals, member: Member | None) -> int:
    _become_subreaper()
    tree = Tree()
    link = Link(socket_path(given.socket, environment), lambda: _hello(given))
    received = _welcomed(link)
    policy = _policy(given, environment, received)
    if member is not None:
        policy = member.limited(policy)
    if not given.core and not policy.only_watches:
        command.forbid_cores()
    try:
        place = opening.place_of(given, environment, member)
    except StateError as error:
        raise NoFolder(f"--state: {error}") from error
    try:
        return _supervise(given, environment, _Parts(signals, tree, link, received, policy, place, member))
    finally:
        link.close()
        if place is not None:
            opening.close(place)


def _member(given: Arguments, environment: Mapping[str, str]) -> Member | None:
    """None of a command that runs on this node alone."""
    if not given.in_step:
        return None
    from nodeagent.job.step.member import NoMember, member_of

    try:
        return member_of(given.in_step, given.state, environment)
    except NoMember as error:
        raise NotBegun(str(error)) from error


def _become_subreaper() -> None:
    try:
        prctl.become_subreaper()
    except OSError as error:  # a filter of system calls
        print_message(f"{error.strerror}; processes that leave their parent are not found")


@dataclass(frozen=True, slots=True)
class _Parts:
    signals: Signals
    tree: Tree
    link: Link
    received: list[Received]
    policy: Policy
    place: State | None
    member: Member | None


def _supervise(given: Arguments, environment: Mapping[str, str], parts: _Parts) -> int:
    place, tree, member = parts.place, parts.tree, parts.member
    journal = opening.journal_of(place, given)
    beats = opening.beats_of(place, environment)
    recovered = opening.recovered_of(journal, beats, looks=member is not None)
    key = given.job or environment.get("SLURM_JOB_ID", "")
    keeps_counts = place is not None and place.is_given and member is None
    record = Record(place, journal, job=key, keeps_counts=keeps_counts)
    ring = Ring(None if place is None else place.folder)
    progress = _progress(given)
    counts = _counts(parts, key, environment, recovered.session)
    if progress is not None:
        counts = progress.baseline(counts)
    runner = Runner(given.command, tree, foreground=given.foreground)
    supervisor = Supervisor(
        session=recovered.session,
        record=record,
        link=parts.link,
        signals=parts.signals,
        runner=runner,
        watching=Watching(
            _settings(given, parts.policy), tree, ring, parts.link.ask, progress, _shared_hangs(member)
        ),
        gathering=Gathering(place, tree, ring.files),
        beats=beats,
    )
    if recovered.has_left(counts):
        status = supervisor.leave_again(recovered.reports)
    else:
        record.keep(counts)
        began = _began(parts, counts, recovered.survivors)
        try:
            status = supervisor.run(began, parts.received, recovered.reports)
        except Exception:  # a defect of ours ends no job: what can still be done is to wait for it
            if runner.process is None:
                raise
            import traceback

            print_message(
                f"a defect of the supervisor; it only waits for the command now: {traceback.format_exc()}"
            )
            status = runner.wait_alone(parts.signals)
            if member is not None:
                member.waits_alone(status, counts)
            return status
    if member is not None and supervisor.left is not None:
        member.left(supervisor.left, recovered.session.state)
    record.finish()
    if beats is not None:
        beats.close()
    return status


def _counts(parts: _Parts, key: str, environment: Mapping[str, str], session: Session) -> Counts:
    """What was counted so far. The loop of a step has counted the placement already."""
    if parts.member is None:
        return counts_of(parts.place, key, environment, session)
    return (kept_counts(parts.place, key) if parts.place is not None else None) or Counts()


def _began(parts: _Parts, counts: Counts, survivors: tuple[Process, ...]) -> Began:
    if parts.member is not None:
        return parts.member.began(procfs.boot_id(), parts.policy, counts, survivors)
    return Began(boot_id=procfs.boot_id(), policy=parts.policy, counts=counts, survivors=survivors)


def _shared_hangs(member: Member | None) -> SharedHangs | None:
    if member is None:
        return None
    from nodeagent.job.step.shared_hangs import SharedHangs

    return SharedHangs(member.folder, member.run, member.node)


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


def _policy(given: Arguments, environment: Mapping[str, str], received: list[Received]) -> Policy:
    welcome = _welcome_of(received)
    if welcome is None and _nobody_says(given, environment):
        return Policy(in_step=given.in_step > 0)
    from nodeagent.job.policy.policy import PolicyError
    from nodeagent.job.shell.disk.policy_files import Unreadable, settle

    try:
        resolved = settle(given, environment, welcome)
    except (Unreadable, PolicyError) as error:
        raise NotBegun(str(error)) from error
    for note in resolved.notes:
        print_message(note)
    return resolved.policy


def _welcome_of(received: list[Received]) -> Welcome | None:
    if all(isinstance(each, Lost) for each in received):
        return None
    from nodeagent.job.lines import Welcome

    return next((each for each in received if isinstance(each, Welcome)), None)


def _nobody_says(given: Arguments, environment: Mapping[str, str]) -> bool:
    """What may be done to the job: then the policy and all that reads it need not be loaded."""
    named = (name.startswith(variables.OF_THE_POLICY) for name in environment)
    return not (given.flags or given.policy_file or given.annotations_file or any(named))


def _hello(given: Arguments) -> Hello:
    from nodeagent.job.lines import Hello

    return Hello(pid=os.getpid(), version=__version__, job=given.job)


def _welcomed(link: Link) -> list[Received]:
    """What the daemon says first: a welcome with what the site has set, or that there is none."""
    received = link.tick(now_ns())
    while not received and (descriptor := link.fileno()) is not None:
        due_ns = link.next_deadline_ns()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, link.events)
            selector.select(None if due_ns is None else max(0.0, seconds(due_ns - now_ns())))
        received = [*link.ready(now_ns()), *link.tick(now_ns())]
    return received
