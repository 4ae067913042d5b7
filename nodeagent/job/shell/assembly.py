"""Puts the parts of one supervisor together, from the command line, the environment and the files of its job.

Only a wrong policy, or a folder of ``--state`` that cannot be used, keeps the command from running. If
anything else cannot be opened (the usual folder, the journal, the socket of beats), a message names it, and
the command runs without it.
"""

from __future__ import annotations

import os
import selectors
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodeagent import __version__
from nodeagent.job import model as variables
from nodeagent.job.codec import CodecError
from nodeagent.job.hang.settings import HangSettings, least_hang_time_s
from nodeagent.job.model import Counts, Policy
from nodeagent.job.policy.arguments import Arguments
from nodeagent.job.session.values import SessionBegan
from nodeagent.job.shell import command, procfs, state_folder
from nodeagent.job.shell.command import CommandRunner
from nodeagent.job.shell.error_folder import ErrorFolder
from nodeagent.job.shell.journal import Journal, JournalError, JournalOwner
from nodeagent.job.shell.link import ConnectionLost, DaemonLink, socket_path
from nodeagent.job.shell.loop import ReceivedSignals, now_ns, seconds
from nodeagent.job.shell.record import RecoveredSession, SupervisorRecord, counts_of, kept_counts, recover
from nodeagent.job.shell.run_checks import RunChecks
from nodeagent.job.shell.standard_error import print_message
from nodeagent.job.shell.state_folder import StateFolder, StateFolderError
from nodeagent.job.shell.supervisor import JobSupervisor
from nodeagent.job.shell.tree import Tree, become_subreaper, survivors_of
from nodeagent.job.watching.beats import BEAT_VARIABLE, BeatSocket
from nodeagent.job.watching.evidence import Gathering
from nodeagent.job.watching.samples import Ring
from nodeagent.job.watching.watching import Watching

if TYPE_CHECKING:
    from nodeagent.job.lines import SupervisorHello, Welcome
    from nodeagent.job.session.session import JobSession
    from nodeagent.job.session.values import ProcessId
    from nodeagent.job.shell.link import Received
    from nodeagent.job.shell.output_copy import OutputCopy
    from nodeagent.job.shell.output_files import OutputFiles
    from nodeagent.job.step.member import SharedHangs, SharedStepTimes, StepMember
    from nodeagent.job.watching.progress import ProgressReader


def journal_of(place: StateFolder | None, given: Arguments) -> Journal | None:
    if place is None:
        return None
    boot_id = procfs.boot_id()
    if not boot_id:
        print_message(
            "/proc does not show the boot of the machine; a supervisor that is started again"
            " will not know of this run"
        )
        return None
    try:
        job = f"{given.job}/run-{given.in_step}" if given.in_step else given.job
        return Journal(place.journal, JournalOwner(boot_id, job, given.command))
    except JournalError as error:
        print_message(f"{error}; a supervisor that is started again will not know of this run")
        return None


def recovered_of(journal: Journal | None, beats: BeatSocket | None, *, looks: bool) -> RecoveredSession:
    """A journal that cannot be read is reported and moved aside: the job begins as if there were none.

    ``looks``: also without a journal somebody may have outlived an earlier supervisor.
    """
    marker = None if beats is None else (BEAT_VARIABLE, beats.path)
    if journal is None or not journal.earlier:
        return RecoveredSession(survivors=survivors_of(None, marker) if looks else ())
    try:
        return recover(journal.earlier, marker)
    except CodecError as error:
        print_message(
            f"{journal.path}: {error}, counted after its first line; it is moved aside,"
            " and the job begins as if there were none"
        )
        try:
            journal.begin_again()
        except JournalError as failed:
            print_message(f"{failed}; a supervisor that is started again will not know of this run")
        return RecoveredSession(survivors=survivors_of(None, marker))


def place_of(
    given: Arguments, environment: Mapping[str, str], member: StepMember | None
) -> StateFolder | None:
    """A folder that was asked for is needed, or ``StateError`` is raised; the usual one only serves."""
    if member is not None:
        return state_folder.open_alone(member.folder.of_node(member.node), member.folder.counts)
    if given.state:
        return state_folder.open_given(Path(given.state), environment)
    try:
        return state_folder.open_default(given.job, given.command, environment)
    except StateFolderError as error:
        print_message(f"{error}; nothing is kept of this run")
        return None


def close_folder(place: StateFolder) -> None:
    try:
        place.close()
    except OSError as error:
        print_message(f"{error.filename}: {error.strerror}; it stays behind")


def beats_of(place: StateFolder | None, environment: Mapping[str, str]) -> BeatSocket | None:
    if place is None:
        return None
    path = ""
    try:
        path = place.beat_path(environment)
        return BeatSocket(path)
    except OSError as error:
        print_message(f"{path or error.filename}: {error.strerror}; beats of the program are not received")
        return None


def errors_of(place: StateFolder | None, environment: Mapping[str, str]) -> ErrorFolder | None:
    """On this node, next to the socket of beats."""
    if place is None:
        return None
    try:
        return ErrorFolder(place.errors_path(environment))
    except OSError as error:
        print_message(f"{error.filename}: {error.strerror}; errors of Python programs are not noted")
        return None


class NotBegun(Exception):
    """What the user has given keeps the command from being run. The message names each problem on a line."""


class NoFolder(NotBegun):
    """The folder of its state cannot be used. In a step that may be of this node and of this moment alone:
    no outcome is written, and the loop tries again.
    """


def run(given: Arguments, environment: Mapping[str, str]) -> int:
    """Until the supervisor leaves; its status. Raises ``NotBegun``."""
    signals = ReceivedSignals()
    member = _member(given, environment)
    try:
        return _run(given, environment, signals, member)
    except NotBegun as error:
        if member is not None and not isinstance(error, NoFolder):
            member.not_begun(str(error))
        raise


def _run(
    given: Arguments, environment: Mapping[str, str], signals: ReceivedSignals, member: StepMember | None
) -> int:
    _become_subreaper()
    copy = _copy_of_output(given)
    tree = Tree()
    link = DaemonLink(socket_path(given.socket, environment), lambda: _hello(given))
    received = _welcomed(link)
    policy = _policy(given, environment, received)
    if member is not None:
        policy = member.limited(policy)
    if not given.core and policy.role.acts:
        command.forbid_cores()
    try:
        place = place_of(given, environment, member)
    except StateFolderError as error:
        raise NoFolder(f"--state: {error}") from error
    _report_what_is_missing(policy, received, place)
    try:
        parts = _Parts(signals, tree, link, received, policy, place, member, copy)
        return _supervise(given, environment, parts)
    finally:
        if copy is not None and not copy.close():
            print_message("the end of the output is not copied: its reader does not read; the files have it")
        link.close()
        if place is not None:
            close_folder(place)


def _report_what_is_missing(policy: Policy, received: list[Received], place: StateFolder | None) -> None:
    """What the policy asks for, and cannot be had as the supervisor was started."""
    lost = next((each.why for each in received if isinstance(each, ConnectionLost)), "")
    if lost and _welcome_of(received) is None and (policy.role.acts or policy.need_daemon):
        waits = (
            f"; the command waits for it for {policy.heal_timeout_s:g} s at most"
            if policy.need_daemon
            else ""
        )
        print_message(
            f"the daemon does not answer ({lost}): chips are not known,"
            f" and no chip is repaired for this job until it does{waits}"
        )
    _report_resets_not_done(policy, _welcome_of(received))
    if policy.placements is not None and not policy.in_step and (why := _counts_end(place)):
        print_message(
            f"{why}: placements and failures in a row are counted in this placement alone, except for"
            " SLURM_RESTART_COUNT; name a folder that the next placement sees, too"
        )


_NOT_DONE: Final[Mapping[str, str]] = {
    "off": "are switched off",
    "dry-run": "are only recorded, not done,",
    "ask": "are done only once an operator has approved each,",
}
"""By the mode of resets."""


def _report_resets_not_done(policy: Policy, welcome: Welcome | None) -> None:
    """A job that may be stopped for a repair counts on resets."""
    if welcome is None or not policy.in_place:
        return
    for vendor, mode in welcome.resets.items():
        if mode in _NOT_DONE:
            print_message(
                f"resets of {vendor} chips {_NOT_DONE[mode]} on this node (reset.mode: {mode}):"
                " a fault that needs one is not repaired in place"
            )


def _counts_end(place: StateFolder | None) -> str:
    """Why the next placement does not find what this one counts, "" where it may find it."""
    if place is None or not place.is_given:
        return "no --state is given"
    from nodeagent.job.shell.state_lifetime import ends_early

    early = ends_early(place.folder)
    return f"--state {place.folder} lies {early}" if early else ""


def _member(given: Arguments, environment: Mapping[str, str]) -> StepMember | None:
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
        become_subreaper()
    except OSError as error:  # a filter of system calls
        print_message(f"{error.strerror}; processes that leave their parent are not found")


@dataclass(frozen=True, slots=True)
class _Parts:
    signals: ReceivedSignals
    tree: Tree
    link: DaemonLink
    received: list[Received]
    policy: Policy
    place: StateFolder | None
    member: StepMember | None
    copy: OutputCopy | None


def _supervise(given: Arguments, environment: Mapping[str, str], parts: _Parts) -> int:
    place, tree, member = parts.place, parts.tree, parts.member
    journal = journal_of(place, given)
    beats = beats_of(place, environment)
    recovered = recovered_of(journal, beats, looks=member is not None)
    key = given.job or environment.get("SLURM_JOB_ID", "")
    keeps_counts = place is not None and place.is_given and member is None
    record = SupervisorRecord(place, journal, job=key, keeps_counts=keeps_counts)
    ring = Ring(None if place is None else place.folder)
    progress = _progress(given)
    counts = _counts(parts, key, environment, recovered.session)
    if progress is not None:
        counts = progress.baseline(counts)
    errors = errors_of(place, environment) if parts.policy.role.acts and given.error_hook else None
    runner = CommandRunner(
        given.command,
        tree,
        foreground=given.foreground,
        errors=errors,
        output=None if parts.copy is None else _output(given, environment, member),
        copy=parts.copy,
    )
    supervisor = JobSupervisor(
        session=recovered.session,
        record=record,
        link=parts.link,
        signals=parts.signals,
        runner=runner,
        watching=Watching(
            _settings(given, parts.policy),
            tree,
            ring,
            parts.link.ask,
            progress,
            _shared_hangs(member),
            _shared_times(member),
        ),
        gathering=Gathering(place, tree, ring.files),
        beats=beats,
        checks=RunChecks(tree, parts.link.ask),
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
    if errors is not None:
        errors.close()
    if beats is not None:
        beats.close()
    return status


def _copy_of_output(given: Arguments) -> OutputCopy | None:
    """Before anything else is opened, and before the processes of the job are told from others."""
    if not (given.logs or given.errors):
        return None
    from nodeagent.job.shell.output_copy import OutputCopy

    try:
        return OutputCopy()
    except OSError as error:
        print_message(f"fork: {error.strerror}; the output of the command is not kept")
        return None


def _output(given: Arguments, environment: Mapping[str, str], member: StepMember | None) -> OutputFiles:
    from nodeagent.job.shell.output_files import OutputFiles

    of_own = state_folder.task_of(environment) if member is None else member.node
    return OutputFiles.of(given.logs, given.errors, given.logs_kept, of_own)


def _counts(parts: _Parts, key: str, environment: Mapping[str, str], session: JobSession) -> Counts:
    """What was counted so far. The loop of a step has counted the placement already."""
    if parts.member is None:
        return counts_of(parts.place, key, environment, session)
    return (kept_counts(parts.place, key) if parts.place is not None else None) or Counts()


def _began(parts: _Parts, counts: Counts, survivors: tuple[ProcessId, ...]) -> SessionBegan:
    if parts.member is not None:
        return parts.member.began(procfs.boot_id(), parts.policy, counts, survivors)
    return SessionBegan(boot_id=procfs.boot_id(), policy=parts.policy, counts=counts, survivors=survivors)


def _shared_hangs(member: StepMember | None) -> SharedHangs | None:
    if member is None:
        return None
    from nodeagent.job.step.member import SharedHangs

    return SharedHangs(member.folder, member.run, member.node)


def _shared_times(member: StepMember | None) -> SharedStepTimes | None:
    if member is None:
        return None
    from nodeagent.job.step.member import SharedStepTimes

    return SharedStepTimes(member.folder, member.run, member.node)


def _settings(given: Arguments, policy: Policy) -> HangSettings:
    try:
        return HangSettings(
            hang_time_s=policy.hang_time_s,
            period_s=given.period_s,
            kind=policy.kind,
            mode=policy.hang,
            start_limit_s=policy.start_time_s,
            # In a step a node that is well waits at its start for one that is repaired.
            least_start_s=policy.heal_timeout_s if policy.in_step else 0.0,
        )
    except ValueError as error:
        if policy.hang_time_s == Policy().hang_time_s:
            raise NotBegun(f"--period: {error}") from error
        needed = least_hang_time_s(given.period_s)
        raise NotBegun(
            f"hang-time: at least {needed:g}s with a sample each {given.period_s:g} s (--period),"
            f" not {policy.hang_time_s:g}s"
        ) from error


def _progress(given: Arguments) -> ProgressReader | None:
    if not given.progress:
        return None
    from nodeagent.job.watching.progress import ProgressReader

    return ProgressReader(given.progress)


def _policy(given: Arguments, environment: Mapping[str, str], received: list[Received]) -> Policy:
    welcome = _welcome_of(received)
    if welcome is not None and welcome.job.startswith("pid:") and environment.get("SLURM_JOB_ID"):
        print_message(
            f"the daemon does not know that this is job {environment['SLURM_JOB_ID']} of Slurm: no claim of"
            " its prolog counts for it, and a reset waits for it; see docs/slurm.md, How a job is known"
        )
    if welcome is None and _nobody_says(given, environment):
        return Policy(in_step=given.in_step > 0)
    from nodeagent.job.policy.policy import PolicyError, PolicyFileError, settle

    try:
        resolved = settle(given, environment, welcome)
    except (PolicyFileError, PolicyError) as error:
        raise NotBegun(str(error)) from error
    for note in resolved.notes:
        print_message(note)
    return resolved.policy


def _welcome_of(received: list[Received]) -> Welcome | None:
    if all(isinstance(each, ConnectionLost) for each in received):
        return None
    from nodeagent.job.lines import Welcome

    return next((each for each in received if isinstance(each, Welcome)), None)


def _nobody_says(given: Arguments, environment: Mapping[str, str]) -> bool:
    """What may be done to the job: then the policy and all that reads it need not be loaded."""
    named = (name.startswith(variables.POLICY_VARIABLES) for name in environment)
    return not (given.flags or given.policy_file or given.annotations_file or any(named))


def _hello(given: Arguments) -> SupervisorHello:
    from nodeagent.job.lines import SupervisorHello

    return SupervisorHello(pid=os.getpid(), version=__version__, job=given.job)


def _welcomed(link: DaemonLink) -> list[Received]:
    """The daemon's welcome with the site's settings, or the loss of the connection."""
    received = link.tick(now_ns())
    while not received and (descriptor := link.fileno()) is not None:
        due_ns = link.next_deadline_ns()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, link.events)
            selector.select(None if due_ns is None else max(0.0, seconds(due_ns - now_ns())))
        received = [*link.ready(now_ns()), *link.tick(now_ns())]
    return received
