"""The files between the daemon and a reset, in one folder, by which either may die and the other go on.

    NAME.request   the daemon wants it; whoever renames it to NAME.begun does it, and nobody else ever
    NAME.lock      flocked by the process that does it, for as long as it lives
    NAME.off       the daemon has called it off since, and why; heeded until the vendor is asked
    NAME.result    how it went; written by rename

A name stands for one attempt of one action. Here the files are read and written, and nothing else is done.
The daemon may write in the folder, so that nothing in it decides what a reset may do: see ``record`` for
that.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from nodeagent.reset_unit.exchange import files
from nodeagent.reset_unit.exchange.files import Locked
from nodeagent.reset_unit.exchange.request import MAX_BYTES, Request, Result, decoded, name_of

_SUFFIXES: Final = ("request", "begun", "off", "result", "log", "lock")


class Folder:
    """``path`` is made where it is missing, for its owner alone. Each method raises ``OSError`` and
    ``ValueError`` where a file cannot be had, or is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        files.make(self.path)

    def ask(self, request: Request) -> str:
        """Leave a request; its name."""
        name = name_of(request.action, request.attempt)
        self._write(f"{name}.request", msgspec.json.encode(request))
        return name

    def begin(self, name: str) -> Request | None:
        """Take the request, under the lock of that name; None where there is none (any more)."""
        try:
            with files.opened(self.path) as folder:
                files.rename(folder, f"{name}.request", f"{name}.begun")
        except FileNotFoundError:
            return None
        return decoded(self._read(f"{name}.begun"), name)

    def withdraw(self, name: str) -> bool:
        """Take a request back that nobody has begun, under its lock. False: somebody has."""
        try:
            (self.path / f"{name}.request").unlink()
        except FileNotFoundError:
            return not (self.path / f"{name}.begun").exists()
        return True

    def is_asked(self, name: str) -> bool:
        """Whether a request waits that nobody has begun."""
        return (self.path / f"{name}.request").exists()

    def call_off(self, name: str, why: str) -> None:
        self._write(f"{name}.off", why.encode())

    def called_off(self, name: str) -> str:
        """Why, "" where it is not."""
        try:
            return self._read(f"{name}.off").decode(errors="replace")
        except FileNotFoundError:
            return ""

    def answer(self, name: str, result: Result) -> None:
        self._write(f"{name}.result", msgspec.json.encode(result))

    def result(self, name: str) -> Result | None:
        """None where there is none."""
        try:
            return msgspec.json.decode(self._read(f"{name}.result"), type=Result)
        except FileNotFoundError:
            return None

    @contextlib.contextmanager
    def locked(self, name: str, wait_s: float = 0.0) -> Iterator[None]:
        """Hold the lock of an attempt. Raises ``Locked`` as well."""
        with files.locked(self.path, f"{name}.lock", wait_s):
            yield

    def is_locked(self, name: str) -> bool:
        """Whether the process of an attempt lives."""
        try:
            with self.locked(name):
                return False
        except Locked:
            return True

    def forget(self, name: str) -> None:
        """Remove what an attempt left. One whose process lives keeps its lock."""
        kept = "lock" if self.is_locked(name) else ""
        for suffix in _SUFFIXES:
            if suffix != kept:
                (self.path / f"{name}.{suffix}").unlink(missing_ok=True)

    def names(self) -> list[str]:
        """All attempts of which there is a file."""
        known = {f".{suffix}" for suffix in _SUFFIXES}
        try:
            return sorted({path.stem for path in self.path.iterdir() if path.suffix in known})
        except FileNotFoundError:
            return []

    def _read(self, file: str) -> bytes:
        with files.opened(self.path) as folder:
            return files.read(folder, file, MAX_BYTES)

    def _write(self, file: str, content: bytes) -> None:
        if len(content) > MAX_BYTES:
            raise ValueError(f"{file} would have {len(content)} bytes; at most {MAX_BYTES} are right")
        with files.opened(self.path) as folder:
            files.write(folder, file, content)
