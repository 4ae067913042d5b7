"""Directories of the daemon: its own ones, those of the service manager, and files of cached results in them.

``make_own`` is safe in a place where other users may create files. The service manager passes its directories
in variables (systemd.exec(5)); without one there are none.

Cached results are kept only in $CACHE_DIRECTORY. They may be deleted at any time. A file that cannot be read
or written is reported, and the result is computed again. The caller checks the content.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar


class NotOwnError(Exception):
    """It is no directory, or somebody else's; the text names it and what to do."""


def make_own(path: Path, mode: int) -> None:
    """Makes it where it is missing, and gives it that mode. A symlink is never followed.

    Raises ``NotOwnError``, and ``OSError`` where the system refuses.
    """
    what_to_do = "remove it, or choose another place"
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotOwnError(f"{path} is no directory; {what_to_do}") from error
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise NotOwnError(f"{path} belongs to another user; {what_to_do}")
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def service_folder(
    variable: Literal["STATE_DIRECTORY", "CACHE_DIRECTORY"], environ: Mapping[str, str]
) -> Path | None:
    """The first, where the unit names several: systemd joins them by colons."""
    first = environ.get(variable, "").partition(":")[0]
    return Path(first) if first else None


T = TypeVar("T")

KEPT: Final = 4
"""Files of one kind; those used longest ago go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFiles:
    """Those of one kind: ``suffix`` ends their names, ``what`` they hold is for people, in the plural."""

    folder: Path
    suffix: str
    what: str
    report: Callable[[str], None]

    def read(self, asked: bytes, load: Callable[[bytes], T], refusals: type[Exception]) -> T | None:
        """What was kept for it; None where that is nothing, or nothing sound: then ``load`` raised one of
        ``refusals``.
        """
        file = self._file(asked)
        try:
            found = load(file.read_bytes())
            file.touch()
        except FileNotFoundError:
            return None
        except (OSError, refusals) as error:
            self.report(f"{file} cannot be used, the {self.what} are made again: {error}")
            return None
        return found

    def write(self, asked: bytes, content: bytes) -> None:
        try:
            # First, so that what full disks leave half written is removed too.
            for old in self._oldest_first()[: 1 - KEPT]:
                old.unlink(missing_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, suffix=self.suffix, delete=False) as fresh:
                fresh.write(content)
            Path(fresh.name).replace(self._file(asked))
        except OSError as error:
            self.report(f"{self.what} cannot be kept for the next start: {error}")

    def _file(self, asked: bytes) -> Path:
        return self.folder / f"{hashlib.sha256(asked).hexdigest()}{self.suffix}"

    def _oldest_first(self) -> list[Path]:
        found = dict[Path, float]()
        for each in self.folder.glob(f"*{self.suffix}"):
            # Another process may have removed it.
            with contextlib.suppress(FileNotFoundError):
                found[each] = each.stat().st_mtime
        return sorted(found, key=lambda each: found[each])


def cache_files(
    suffix: str, what: str, report: Callable[[str], None], environ: Mapping[str, str] = os.environ
) -> CacheFiles | None:
    """None where no service manager gives a folder."""
    folder = service_folder("CACHE_DIRECTORY", environ)
    return None if folder is None else CacheFiles(folder=folder, suffix=suffix, what=what, report=report)
