"""A directory of one's own, also in a place where anybody may put something in its way. It makes no file.

The folders that a service manager makes for the daemon, by the variables of systemd.exec(5).

Without a service manager there are none. Nothing is made or looked at here.

Results that take long to compute, kept on the disk for the next start.

Files are kept only where a service manager gives a folder for them ($CACHE_DIRECTORY, systemd.exec(5)). They
may be deleted at any time. One that cannot be read or written costs the time to compute it anew and nothing
else, and is reported. What is in them is the caller's affair, and so is whether it is sound.
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
    """It is no directory, or somebody else's; the text names it and says what to do."""


def make_own(path: Path, mode: int) -> None:
    """Makes it where it is missing, and gives it that mode. A symlink is not followed, whoever made it.

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
            with tempfile.NamedTemporaryFile(dir=self.folder, suffix=self.suffix, delete=False) as beside:
                beside.write(content)
            Path(beside.name).replace(self._file(asked))
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
