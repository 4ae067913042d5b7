"""What is put on the disk for the next supervisor: the journal of the session, and the counts.

A job does not end because its supervisor cannot write: that is printed once, and the job goes on without.
"""

from __future__ import annotations

from pathlib import Path

from nodeagent.job.inputs import Given
from nodeagent.job.model import Counts
from nodeagent.job.shell.disk.journal import Journal, JournalError
from nodeagent.job.shell.disk.state import State
from nodeagent.job.shell.messages import print_message


class Record:
    """``journal`` None: it could not be opened. ``keeps_counts``: there is a ``--state``."""

    def __init__(self, state: State | None, journal: Journal | None, *, job: str, keeps_counts: bool) -> None:
        self._state = state
        self._journal = journal
        self._job = job
        self._keeps_counts = keeps_counts

    def write(self, at_ns: int, given: Given) -> None:
        if self._journal is None:
            return
        from nodeagent.job.session.journal_records import encode

        try:
            self._journal.append(encode(at_ns, given))
        except JournalError as error:
            self._journal = None
            print_message(f"{error}; a supervisor that is started anew will not know of this run")

    def keep(self, counts: Counts) -> None:
        from nodeagent.job.counts import run_state

        if self._state is None or not self._keeps_counts:
            return
        try:
            self._state.put_counts(run_state.encode(counts, job=self._job))
        except OSError as error:
            print_message(
                f"{self._state.counts}: {error.strerror}; the next placement will not know these counts"
            )

    def folder_of(self, run: int) -> Path | None:
        if self._state is None:
            return None
        try:
            return self._state.run(run)
        except OSError as error:
            print_message(f"{error.filename}: {error.strerror}; nothing of run {run} is kept")
            return None

    def finish(self) -> None:
        if self._journal is None:
            return
        try:
            self._journal.finish()
        except JournalError as error:
            print_message(f"{error}; remove the file before this job runs again on this node")
