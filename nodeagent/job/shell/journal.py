"""The journal: every input of the session, on the disk before its effects are done.

The first line names the boot and the job. If either differs, the file is moved aside and the run begins new.
A supervisor that is started again replays the lines in their order and has the same session.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from nodeagent.job.codec import CodecError, TaggedLines, line_of, object_in, whole_number
from nodeagent.job.model import RunRequest
from nodeagent.job.session.session import JobSession
from nodeagent.job.session.values import (
    Armed,
    CalledOff,
    CommandExited,
    Emptied,
    Gathered,
    Hung,
    LinkBack,
    LinkLost,
    NotRun,
    Progressed,
    Ran,
    RunNotReady,
    SessionBegan,
    SessionEffect,
    SessionInput,
    SessionTick,
    Signalled,
    Slowed,
)
from nodeagent.job.shell import files

JOURNAL_VERSION: Final = 1
MAX_BYTES: Final = 64 << 20
"""A job of a month with a checkpoint each minute has 10 MiB."""


@dataclass(frozen=True, slots=True)
class JournalOwner:
    """Whose lines these are: of one boot of the machine, one job, one command."""

    boot_id: str
    job: str
    command: tuple[str, ...]


class JournalError(Exception):
    """It cannot be read or written. The message names the file and the reason."""


class Journal:
    """Opened for one owner. ``earlier`` are the lines that a supervisor before wrote, () in a new one."""

    def __init__(self, path: Path, owner: JournalOwner) -> None:
        """Raises ``JournalError``."""
        self.path = path
        self._owner = owner
        try:
            self.earlier = self._taken_over()
            self._file = files.open_own(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            if not self.earlier:
                os.ftruncate(self._file, 0)
                self._write(self._head())
        except OSError as error:
            raise JournalError(f"{path}: {error.strerror}") from error

    def append(self, line: bytes) -> None:
        """On the disk when it returns; with its newline. Raises ``JournalError``."""
        try:
            self._write(line)
        except OSError as error:
            raise JournalError(f"{self.path}: {error.strerror}") from error

    def begin_again(self) -> None:
        """What is there cannot be read. Raises ``JournalError``."""
        os.close(self._file)
        try:
            self.path.replace(_aside(self.path))
            self._file = files.open_own(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._write(self._head())
        except OSError as error:
            raise JournalError(f"{self.path}: {error.strerror}") from error
        self.earlier = ()

    def finish(self) -> None:
        """The job has left: the next supervisor begins a new one. Raises ``JournalError``."""
        os.close(self._file)
        try:
            self.path.replace(_aside(self.path))
        except OSError as error:
            raise JournalError(f"{self.path}: {error.strerror}") from error

    def _taken_over(self) -> tuple[bytes, ...]:
        try:
            data = files.read(self.path, MAX_BYTES)
        except FileNotFoundError:
            return ()
        whole = data[: data.rfind(b"\n") + 1]
        head, *lines = whole.splitlines(keepends=True) or [b""]
        if head != self._head():
            with suppress(FileNotFoundError):
                self.path.replace(_aside(self.path))
            return ()
        if len(whole) < len(data):  # torn by a crash: the input has had no effects yet
            torn = files.open_own(self.path, os.O_WRONLY)
            try:
                os.ftruncate(torn, len(whole))
            finally:
                os.close(torn)
        return tuple(lines)

    def _head(self) -> bytes:
        owner = {"journal": JOURNAL_VERSION, **asdict(self._owner)}
        return line_of(owner).encode()

    def _write(self, line: bytes) -> None:
        if os.write(self._file, line) != len(line):
            raise OSError(28, os.strerror(28))
        os.fdatasync(self._file)


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.stem}.1{path.suffix}")


# ---------------------------------------------------------------------- its records

_RECORDS: Final = TaggedLines(
    "given",
    {
        "began": SessionBegan,
        "wanted": RunRequest,
        "link_lost": LinkLost,
        "link_back": LinkBack,
        "ran": Ran,
        "not_run": NotRun,
        "not_ready": RunNotReady,
        "called_off": CalledOff,
        "exited": CommandExited,
        "emptied": Emptied,
        "armed": Armed,
        "hung": Hung,
        "slow": Slowed,
        "gathered": Gathered,
        "progressed": Progressed,
        "signalled": Signalled,
        "tick": SessionTick,
    },
)
"""The tags are those of journals on disks: they never change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRecord:
    at_ns: int
    given: SessionInput


def encode_record(at_ns: int, given: SessionInput) -> bytes:
    """The record as a line with its newline."""
    return _RECORDS.encode(given, at_ns=at_ns)


def decode_records(lines: Iterable[bytes]) -> tuple[JournalRecord, ...]:
    """A bad line is an error that names its number: what follows from a gap cannot be known. Raises
    ``CodecError``.
    """
    return tuple(_record(line, number) for number, line in enumerate(lines, start=1))


def _record(line: bytes, number: int) -> JournalRecord:
    try:
        values = object_in(line)
        return JournalRecord(at_ns=whole_number(values, "at_ns"), given=_RECORDS.value_in(values))
    except CodecError as error:
        raise CodecError(f"line {number}: {error}") from error


def replay(records: Iterable[JournalRecord]) -> tuple[JobSession, tuple[SessionEffect, ...]]:
    """The session as it was, and all effects that it had."""
    session = JobSession()
    effects = [effect for record in records for effect in session.step(record.at_ns, record.given)]
    return session, tuple(effects)
