"""Opens what a supervisor keeps on the disk: its folder, its journal, the socket of beats.

Only a folder that was asked for is needed. Where anything else cannot be opened, a message says so,
and the command is run all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nodeagent.job.policy.arguments import Arguments
from nodeagent.job.session import journal_records
from nodeagent.job.shell.disk import state
from nodeagent.job.shell.disk.journal import Journal, JournalError, Owner
from nodeagent.job.shell.disk.recovery import Recovered, recover
from nodeagent.job.shell.disk.state import State, StateError
from nodeagent.job.shell.messages import print_message
from nodeagent.job.shell.processes import procfs
from nodeagent.job.shell.processes.tree import survivors_of
from nodeagent.job.shell.watching.beats import VARIABLE, BeatSocket

if TYPE_CHECKING:
    from nodeagent.job.step.member import Member


def journal_of(place: State | None, given: Arguments) -> Journal | None:
    if place is None:
        return None
    boot_id = procfs.boot_id()
    if not boot_id:
        print_message(
            "/proc does not tell the boot of the machine; a supervisor started anew will not know of this run"
        )
        return None
    try:
        job = f"{given.job}/run-{given.in_step}" if given.in_step else given.job
        return Journal(place.journal, Owner(boot_id, job, given.command))
    except JournalError as error:
        print_message(f"{error}; a supervisor that is started anew will not know of this run")
        return None


def recovered_of(journal: Journal | None, beats: BeatSocket | None, *, looks: bool) -> Recovered:
    """A journal that cannot be understood is reported, and kept beside: the job begins as if there were none.

    ``looks``: also without a journal somebody may have outlived an earlier supervisor.
    """
    marker = None if beats is None else (VARIABLE, beats.path)
    if journal is None or not journal.earlier:
        return Recovered(survivors=survivors_of(None, marker) if looks else ())
    try:
        return recover(journal.earlier, marker)
    except journal_records.JournalError as error:
        print_message(
            f"{journal.path}: {error}, counted behind its head; it is moved aside, and the job begins anew"
        )
        try:
            journal.begin_anew()
        except JournalError as failed:
            print_message(f"{failed}; a supervisor that is started anew will not know of this run")
        return Recovered(survivors=survivors_of(None, marker))


def place_of(given: Arguments, environment: Mapping[str, str], member: Member | None) -> State | None:
    """A folder that was asked for is needed, or ``StateError`` is raised; the usual one only serves."""
    if member is not None:
        return state.open_alone(member.folder.of_node(member.node), member.folder.counts)
    if given.state:
        return state.open_given(Path(given.state), environment)
    try:
        return state.open_default(given.job, given.command, environment)
    except StateError as error:
        print_message(f"{error}; nothing is kept of this run")
        return None


def close(place: State) -> None:
    try:
        place.close()
    except OSError as error:
        print_message(f"{error.filename}: {error.strerror}; it stays behind")


def beats_of(place: State | None, environment: Mapping[str, str]) -> BeatSocket | None:
    if place is None:
        return None
    path = ""
    try:
        path = place.beat_path(environment)
        return BeatSocket(path)
    except OSError as error:
        print_message(f"{path or error.filename}: {error.strerror}; beats of the program are not received")
        return None
