"""The file of what was given to the session: on the disk before anything is done for it.

The first line says of which boot and job it is; where either is another one, the file is moved aside, and
the run begins anew. A supervisor that is started anew gets the lines back. What they mean it does not know.
"""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from nodeagent.job.shell.disk import regular_files

VERSION: Final = 1
MAX_BYTES: Final = 64 << 20
"""A job of a month with a checkpoint each minute has 10 MiB."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose lines these are: of one boot of the machine, one job, one command."""

    boot_id: str
    job: str
    command: tuple[str, ...]


class JournalError(Exception):
    """It cannot be read or written. The text names the file and says why."""


class Journal:
    """Opened for one owner. ``earlier`` are the lines that a supervisor before wrote, () in a new one."""

    def __init__(self, path: Path, owner: Owner) -> None:
        """Raises ``JournalError``."""
        self.path = path
        self._owner = owner
        try:
            self.earlier = self._taken_over()
            self._file = regular_files.open_own(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
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

    def begin_anew(self) -> None:
        """What stands there cannot be understood. Raises ``JournalError``."""
        os.close(self._file)
        try:
            self.path.replace(_aside(self.path))
            self._file = regular_files.open_own(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._write(self._head())
        except OSError as error:
            raise JournalError(f"{self.path}: {error.strerror}") from error
        self.earlier = ()

    def finish(self) -> None:
        """The job has left: the next supervisor begins anew. Raises ``JournalError``."""
        os.close(self._file)
        try:
            self.path.replace(_aside(self.path))
        except OSError as error:
            raise JournalError(f"{self.path}: {error.strerror}") from error

    def _taken_over(self) -> tuple[bytes, ...]:
        try:
            data = regular_files.read(self.path, MAX_BYTES)
        except FileNotFoundError:
            return ()
        whole = data[: data.rfind(b"\n") + 1]
        head, *lines = whole.splitlines(keepends=True) or [b""]
        if head != self._head():
            with suppress(FileNotFoundError):
                self.path.replace(_aside(self.path))
            return ()
        if len(whole) < len(data):  # torn by a crash: what it was to say has led to nothing yet
            torn = regular_files.open_own(self.path, os.O_WRONLY)
            try:
                os.ftruncate(torn, len(whole))
            finally:
                os.close(torn)
        return tuple(lines)

    def _head(self) -> bytes:
        owner = {"journal": VERSION, **asdict(self._owner)}
        return json.dumps(owner, separators=(",", ":")).encode() + b"\n"

    def _write(self, line: bytes) -> None:
        if os.write(self._file, line) != len(line):
            raise OSError(28, os.strerror(28))
        os.fdatasync(self._file)


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.stem}.1{path.suffix}")
