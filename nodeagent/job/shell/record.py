"""What a supervisor keeps on the disk for the next one, and what the next one reads of it.

The journal gives the session back; ``run_state.json`` holds the counts that outlive a placement, on storage
that all nodes of the job see. A torn or foreign file of counts is an error, is moved aside with a message,
and never reads as "nothing was counted". A job does not end because its supervisor cannot write: that is
printed once, and the job goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final

from nodeagent.job import codec
from nodeagent.job.codec import CodecError
from nodeagent.job.model import SCHEDULE_COUNT, Counts, RunReport
from nodeagent.job.session.session import JobSession
from nodeagent.job.session.state import SessionPhase
from nodeagent.job.session.values import ProcessId, SessionInput
from nodeagent.job.shell import files
from nodeagent.job.shell.journal import Journal, JournalError, decode_records, encode_record, replay
from nodeagent.job.shell.standard_error import print_message
from nodeagent.job.shell.state_folder import StateFolder
from nodeagent.job.shell.tree import survivors_of


class SupervisorRecord:
    """``journal`` None: it could not be opened. ``keeps_counts``: there is a ``--state``."""

    def __init__(
        self, state: StateFolder | None, journal: Journal | None, *, job: str, keeps_counts: bool
    ) -> None:
        self._state = state
        self._journal = journal
        self._job = job
        self._keeps_counts = keeps_counts

    def write(self, at_ns: int, given: SessionInput) -> None:
        if self._journal is None:
            return
        try:
            self._journal.append(encode_record(at_ns, given))
        except JournalError as error:
            self._journal = None
            print_message(f"{error}; a supervisor that is started again will not know of this run")

    def keep(self, counts: Counts) -> None:

        if self._state is None or not self._keeps_counts:
            return
        try:
            self._state.put_counts(encode_counts(counts, job=self._job))
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


MAX_COUNTS_BYTES: Final = 1 << 16
"""It holds a few numbers and the name of the job."""

_FORMAT: Final = "nodeagent-job-run-state"
_MAY_BE_NONE: Final = frozenset({"best"})
_ADDED: Final = frozenset({"start", "same_errors", "replacements"})


def encode_counts(counts: Counts, *, job: str) -> str:
    return codec.encode_document(counts, _FORMAT, job=job)


def decode_counts(text: str, *, job: str) -> Counts:
    """Raises ``JsonFileError``."""
    values = codec.document_values(text, _FORMAT)
    if values.get("job") != job:
        raise CodecError(f"job: {job!r}, not {values.get('job')!r}; give each job a --state of its own")
    counts = codec.document_value(Counts, values, added=_ADDED)
    _check_not_negative(counts)
    return counts


def _check_not_negative(counts: Counts) -> None:
    for each in fields(counts):
        value = getattr(counts, each.name)
        if isinstance(value, int) and value < 0 and each.name not in _MAY_BE_NONE:
            raise CodecError(f"{each.name}: a number from 0, not {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredSession:
    """``reports`` are all that were ordered: which of them the daemon has taken, the daemon knows."""

    session: JobSession = field(default_factory=JobSession)
    reports: tuple[RunReport, ...] = ()
    survivors: tuple[ProcessId, ...] = ()

    def has_left(self, counts: Counts) -> bool:
        """Whether that session left, and only the exit of its supervisor was missing. One that a signal ended
        is no end of the job: another supervisor is started only to run it.
        """
        state = self.session.state
        return (
            state.phase is SessionPhase.LEFT
            and state.signal is None
            and state.counts.schedule == counts.schedule
        )


def recover(lines: Sequence[bytes], marker: tuple[str, str] | None) -> RecoveredSession:
    """``marker``: a variable that each process of the job has in its environment.

    Raises ``journal_records.JournalError``.
    """
    session, effects = replay(decode_records(lines))
    return RecoveredSession(
        session=session,
        reports=tuple(effect for effect in effects if isinstance(effect, RunReport)),
        survivors=survivors_of(session.state.process, marker),
    )


def counts_of(
    place: StateFolder | None, job: str, environment: Mapping[str, str], session: JobSession
) -> Counts:
    """What the placements before have left, with the number of this one: as the platform sets it, else as
    Slurm counts restarts, else one more than before.
    """
    kept = None if place is None or not place.is_given else kept_counts(place, job)
    restarts = _number(environment.get("SLURM_RESTART_COUNT"))
    schedule = _number(environment.get(SCHEDULE_COUNT))
    if not schedule and restarts is not None:
        schedule = restarts + 1
    if not schedule:
        goes_on = session.state.phase is not SessionPhase.NEW
        schedule = session.state.counts.schedule if goes_on else 1 + (0 if kept is None else kept.schedule)
    if kept is None:
        return Counts(schedule=schedule, placements=restarts or 0)
    return replace(kept, schedule=schedule)


def kept_counts(place: StateFolder, job: str) -> Counts | None:
    """None if there are none. A file of something else is moved aside, with a message."""
    try:
        text = files.read(place.counts, MAX_COUNTS_BYTES).decode()
        return decode_counts(text, job=job)
    except FileNotFoundError:
        return None
    except OSError as error:
        print_message(f"{place.counts}: {error.strerror}; counting begins from zero")
        return None
    except (CodecError, UnicodeDecodeError) as error:
        print_message(f"{place.counts}: {error}; {_moved(place)}, counting begins from zero")
        return None


def _moved(place: StateFolder) -> str:
    try:
        return f"it is moved to {place.move_counts_aside().name}"
    except OSError as error:
        return f"it cannot be moved aside ({error.strerror})"


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
