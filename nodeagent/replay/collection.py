"""A folder or an archive of files, such as a sosreport: the kernel logs in it, each a source of one log.

Nothing is written to a disk: an archive is read from its beginning to its end, twice. A member that cannot be
read is left out, and remarked.
"""

import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Final, TypeVar

from nodeagent.drivers.kmsg.parse import printable
from nodeagent.replay import bug_report, holdings, journal_file, readers
from nodeagent.replay.log import Given, LogLine, Source
from nodeagent.replay.packing import PACKING_ERRORS, Peeked, Readable, unpacked
from nodeagent.replay.reading import Reports, lines, opened
from nodeagent.toml.problem import Problems

_TAR_MAGIC: Final = b"ustar"
_TAR_MAGIC_AT: Final = 257
_ZIP_MAGIC: Final = b"PK\x03\x04"
_ERRORS: Final = (*PACKING_ERRORS, tarfile.TarError, zipfile.BadZipFile, NotImplementedError, RuntimeError)
"""The last two are zipfile's, for a packing that it does not know and for a password."""


Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Member:
    """``name`` is its path within. It can be opened until the next member is asked for."""

    name: str
    written_ns: int
    opened: Callable[[], AbstractContextManager[Readable]]


Members = Callable[[Path, Reports], Iterator[Member]]


def members_of(path: Path, beginning: bytes) -> Members | None:
    """How the members of this file are found; None for a file that is no archive."""
    if path.is_dir():
        return _of_folder
    if beginning.startswith(_ZIP_MAGIC):
        return _of_zip
    if beginning[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC):
        return _of_tar
    return None


def sources(path: Path, members: Members, given: Given, reports: Reports) -> Iterator[Source]:
    """Of each kernel log in it. Raises ReplayError where there is none, or it cannot be read."""
    taken = holdings.chosen([member.name for member in members(path, reports)])
    if not taken:
        looked_for = ", ".join(holding.what for holding in holdings.HOLDINGS)
        reports.add(None, "", f"no kernel log in it, nor a store of nodeagent; looked for: {looked_for}")
    reports.raise_any()
    for member in members(path, reports):
        if member.name in taken:
            yield from _sources_of(member, taken[member.name], given)
    reports.raise_any()


def _sources_of(member: Member, rank: int, given: Given) -> Iterator[Source]:
    name = printable(member.name)
    own = replace(given, written_ns=member.written_ns, name=name)
    with ExitStack() as stack:
        try:
            text = stack.enter_context(unpacked(stack.enter_context(member.opened())))
        except _ERRORS as error:
            given.tally.remark(f"{name} is left out: {_words_of(error)}")
            return
        if text.beginning.startswith(journal_file.MAGIC):
            given.tally.remark(
                f"{name} is left out: a file of the journal itself; unpack what it is in first"
            )
        elif bug_report.begins(text.beginning):
            yield from bug_report.sources(_readable(lines(text, lambda _: None), own), own)
        else:
            given.tally.parts[name] = None
            yield Source(_readable(_lines_of(text, own), own), name, rank)


def _lines_of(text: Peeked, given: Given) -> Iterator[LogLine]:
    reports = Reports(given.name, Problems())
    yield from readers.reader_of(text, given.only).read(text, reports, given)
    for problem in reports.problems.found()[:1]:
        given.tally.remark(f"{problem}; what is wrong is left out")


def _readable(parts: Iterator[Part], given: Given) -> Iterator[Part]:
    """All of them, as far as the file is readable."""
    try:
        yield from parts
    except _ERRORS as error:
        given.tally.remark(f"{given.name} is read only in part: {_words_of(error)}")


def _words_of(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error)


# --- what holds members -------------------------------------------------------------------------------------


def _of_folder(path: Path, reports: Reports) -> Iterator[Member]:
    """Regular files alone: a pipe would never end, and a link leads to what is there anyway."""

    def refused(error: OSError) -> None:
        reports.add(None, "", f"cannot be read: {error.strerror}: {error.filename}")

    for folder, folders, names in os.walk(path, onerror=refused):
        folders.sort()
        for name in sorted(names):
            file = Path(folder, name)
            state = file.lstat()
            if stat.S_ISREG(state.st_mode):
                yield Member(file.relative_to(path).as_posix(), state.st_mtime_ns, partial(_opened, file))


@contextmanager
def _opened(file: Path) -> Iterator[Readable]:
    with file.open("rb") as plain:
        if plain.read(len(journal_file.MAGIC)) != journal_file.MAGIC:
            plain.seek(0)
            yield plain
            return
    with journal_file.exported(file) as exported:
        yield exported


def _of_tar(path: Path, reports: Reports) -> Iterator[Member]:
    try:
        with opened(path, reports) as text, tarfile.open(fileobj=text, mode="r|") as archive:  # type: ignore[call-overload]
            for info in archive:
                if info.isreg():
                    yield Member(info.name, int(info.mtime * 1e9), partial(_extracted, archive, info))
    except tarfile.TarError as error:
        reports.add(None, "", f"cannot be read as an archive: {error}")


def _extracted(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(info)
    assert file is not None, "it is a regular file"
    return file


def _of_zip(path: Path, reports: Reports) -> Iterator[Member]:
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    written = datetime(*info.date_time, tzinfo=UTC)
                    yield Member(info.filename, int(written.timestamp() * 1e9), partial(archive.open, info))
    except (OSError, zipfile.BadZipFile) as error:
        reports.add(None, "", f"cannot be read as an archive: {_words_of(error)}")
