"""The kernel logs in a folder, an archive such as a sosreport, or NVIDIA's bug report; each is one source.

The names are those of sos (sos/report/plugins/kernel.py and logs.py), of nvidia-bug-report.sh, of the logs of
distributions and of kdump, and of what MindCluster collects (ascend_fd/pkg/parse/parser_saver.py). A new name
is a new row. Nothing is written to a disk: an archive is read twice from its beginning to its end. A member
that cannot be read is left out, with a remark.

nvidia-bug-report.sh writes a text of sections, each after a line of underscores. It also copies files of
users. So a title that occurs twice, which the script never writes, is not trusted, and neither is what
follows it (``matching``).
"""

import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import IO, Final, TypeVar

from nodeagent.drivers.kmsg.parse import printable
from nodeagent.replay import journal, readers
from nodeagent.replay.kernel_text import KernelText
from nodeagent.replay.log import GivenFile, LogLine, LogSource, calendar_ns
from nodeagent.replay.reading import PACKING_ERRORS, Peeked, Readable, Reports, lines, opened, unpacked
from nodeagent.replay.text_clock import months_of
from nodeagent.toml.problem import Problems

_PACKED: Final = r"(?:\.(?:gz|bz2|xz|zst|lz4))?"


@dataclass(frozen=True, slots=True)
class Holding:
    """What a file of such a name holds. ``regex`` is of the name alone, without its folder."""

    what: str
    regex: re.Pattern[str]


def _holding(what: str, regex: str) -> Holding:
    return Holding(what, re.compile(rf"(?:{regex}){_PACKED}"))


HOLDINGS: Final = (
    _holding(
        "journal",
        r"journalctl(?:_--no-pager)?(?:\.txt|\.log)?|journal(?:d|ctl)?[\w-]*\.(?:log|txt|export|json)"
        r"|[\w@.-]+\.journal",
    ),
    _holding("journal of one boot", r"journalctl(?:[ _-]+no-pager)?[ _-]+(?:b|boot)(?:[ _=]-?\d+)?"),
    _holding("/var/log/messages", r"messages(?:[-_][\w-]*)?(?:\.\d+)?(?:\.txt|\.log)?"),
    _holding("/var/log/kern.log", r"kern(?:el)?\.log(?:[-_.]\d[\w-]*)?"),
    _holding("/var/log/syslog", r"syslog(?:[-_.]\d[\w-]*)?(?:\.txt|\.log)?"),
    _holding("dmesg -T", r"dmesg[ _.-]+(?:-?T|human|ctime)\b[\w.-]*"),
    _holding("dmesg", r"(?:\w+-)?(?:Current)?[Dd]mesg(?:[-_.](?!conf)[\w.-]*)?"),
    _holding("host_kernel.log of Ascend", r"host_kernel[\w-]*\.log(?:\.\d+)?"),
    _holding("kernel log of an Ascend device", r"device-os_\d+\.log"),
    _holding("console", r"(?:console|serial|sol)[\w-]*\.(?:log|txt)"),
)
"""The first has the best time and writer of each line."""

BUG_REPORT: Final = re.compile(rf"nvidia-bug-report[\w.-]*?\.log(?:\.old)?{_PACKED}")
_ANY_LOG: Final = re.compile(rf".*\.(?:log|txt){_PACKED}")


def rank_of(path: str) -> int | None:
    """The place in HOLDINGS of a file's path; None for one that holds no kernel log."""
    name = PurePosixPath(path).name
    return next((rank for rank, holding in enumerate(HOLDINGS) if holding.regex.fullmatch(name)), None)


def chosen(paths: list[str]) -> dict[str, int]:
    """The files to be read, each with its rank. Where none has such a name, all that may be logs."""
    named = {path: rank for path in paths if (rank := rank_of(path)) is not None}
    for path in paths:
        if BUG_REPORT.fullmatch(PurePosixPath(path).name):
            named[path] = len(HOLDINGS)
    if named:
        return named
    return {path: 0 for path in paths if len(paths) == 1 or _ANY_LOG.fullmatch(path)}


_BEGINNING: Final = b"Start of NVIDIA bug report log file"
_RULE: Final = re.compile(r"_{40,}")
_TITLE: Final = re.compile(r"(?:\*\*\* )?(/\S+|dmesg|journalctl -b -\d+):?")
_SEARCHED: Final = "Scanning kernel log files"
_PART: Final = re.compile(r"  (/\S+|journalctl[^=]*):")
"""Of the section of the lines that were searched for, one for each log."""

_DATE: Final = "Date: "
_DAY: Final = re.compile(r"(?<![\d:.+-])[0-3]?\d(?![\d:])")
_WORD: Final = re.compile(r"[^\W\d_]+")
_YEAR: Final = re.compile(r"(?<!\d)20\d\d(?!\d)")

Run = tuple[str, list[str]]
"""Lines that follow each other, and the name of the log that they are of: "" for none."""


def begins(beginning: bytes) -> bool:
    """Whether a file that begins so is a bug report."""
    return _BEGINNING in beginning


def bug_report_sources(blocks: Iterable[Sequence[str]], given: GivenFile) -> Iterator[LogSource]:
    """The parts that are logs of the kernel, in their order. All other lines are others'."""
    written_ns = given.written_ns
    for title, runs in groupby(_runs(blocks), key=itemgetter(0)):
        texts = (lines for _, lines in runs)
        rank = rank_of(title) if title else None
        if rank is None:
            for text in chain.from_iterable(texts):
                given.tally.others += bool(text.strip())
                if text.startswith(_DATE):
                    written_ns = _end_of(text.removeprefix(_DATE)) or written_ns
        else:
            name = printable(f"{given.name}: {title}" if given.name else title)
            named = replace(given, name=name, written_ns=min(given.written_ns, written_ns))
            given.tally.parts[named.name] = None
            yield LogSource(KernelText(named).read(texts), named.name, rank)


def _end_of(date: str) -> int | None:
    """The end of the day of a date as the C library writes it, in any language; of its year, where only that
    is read; None where nothing is.

    ``Thu Oct 27 08:50:11 PM -03 2022``, ``mar 13 set 2011, 23.11.55``: the month follows the weekday.
    """
    if (year := _YEAR.search(date)) is None:
        return None
    day = _DAY.search(date)
    named = [months for word in _WORD.findall(date) if len(months := months_of(word)) == 1]
    if day is not None and named:
        (month,) = named[-1]
        with suppress(ValueError):
            return calendar_ns(int(year[0]), month, int(day[0]), "23:59:59")
    return calendar_ns(int(year[0]), 12, 31, "23:59:59")


def _runs(blocks: Iterable[Sequence[str]]) -> Iterator[Run]:
    log, is_title_next, is_searched = "", False, False
    for block in blocks:
        run: list[str] = []
        for text in block:
            before = log
            if _RULE.fullmatch(text):
                log, is_title_next, is_searched = "", True, False
            elif is_title_next and text.strip():
                title = _TITLE.fullmatch(text)
                log = title[1] if title else ""
                is_title_next, is_searched = False, text.startswith(_SEARCHED)
            elif is_searched and (part := _PART.fullmatch(text)):
                log = part[1]
            else:
                run.append(text)
                continue
            yield before, run
            yield "", [text]
            run = []
        yield log, run


_TAR_MAGIC: Final = b"ustar"
_TAR_MAGIC_AT: Final = 257
_ZIP_MAGIC: Final = b"PK\x03\x04"
_ERRORS: Final = (*PACKING_ERRORS, tarfile.TarError, zipfile.BadZipFile, NotImplementedError, RuntimeError)
"""The last two are zipfile's, for a packing that it does not know and a password."""


Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class CollectionMember:
    """``name`` is its path within. It can be opened until the next member is asked for."""

    name: str
    written_ns: int
    opened: Callable[[], AbstractContextManager[Readable]]


Members = Callable[[Path, Reports], Iterator[CollectionMember]]


def members_of(path: Path, beginning: bytes) -> Members | None:
    """How the members of this file are found; None for a file that is no archive."""
    if path.is_dir():
        return _of_folder
    if beginning.startswith(_ZIP_MAGIC):
        return _of_zip
    if beginning[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC):
        return _of_tar
    return None


def sources(path: Path, members: Members, given: GivenFile, reports: Reports) -> Iterator[LogSource]:
    """Of each kernel log in it. Raises ReplayError where there is none, or it cannot be read."""
    taken = chosen([member.name for member in members(path, reports)])
    if not taken:
        looked_for = ", ".join(holding.what for holding in HOLDINGS)
        reports.add(None, "", f"no kernel log in it, nor a store of nodeagent; looked for: {looked_for}")
    reports.raise_any()
    for member in members(path, reports):
        if member.name in taken:
            yield from _sources_of(member, taken[member.name], given)
    reports.raise_any()


def _sources_of(member: CollectionMember, rank: int, given: GivenFile) -> Iterator[LogSource]:
    name = printable(member.name)
    own = replace(given, written_ns=member.written_ns, name=name)
    with ExitStack() as stack:
        try:
            text = stack.enter_context(unpacked(stack.enter_context(member.opened())))
        except _ERRORS as error:
            given.tally.remark(f"{name} is left out: {_text_of(error)}")
            return
        if text.beginning.startswith(journal.MAGIC):
            given.tally.remark(
                f"{name} is left out: a file of the journal itself; unpack what it is in first"
            )
        elif begins(text.beginning):
            yield from bug_report_sources(_readable(lines(text, lambda _: None), own), own)
        else:
            given.tally.parts[name] = None
            yield LogSource(_readable(_lines_of(text, own), own), name, rank)


def _lines_of(text: Peeked, given: GivenFile) -> Iterator[LogLine]:
    reports = Reports(given.name, Problems())
    yield from readers.reader_of(text, given.only).read(text, reports, given)
    for problem in reports.problems.found()[:1]:
        given.tally.remark(f"{problem}; what is wrong is left out")


def _readable(parts: Iterator[Part], given: GivenFile) -> Iterator[Part]:
    """All of them, as far as the file is readable."""
    try:
        yield from parts
    except _ERRORS as error:
        given.tally.remark(f"{given.name} is read only in part: {_text_of(error)}")


def _text_of(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error)


# --- what holds members -------------------------------------------------------------------------------------


def _of_folder(path: Path, reports: Reports) -> Iterator[CollectionMember]:
    """Regular files alone: a pipe would never end, and a link leads to what is there anyway."""

    def refused(error: OSError) -> None:
        reports.add(None, "", f"cannot be read: {error.strerror}: {error.filename}")

    for folder, folders, names in os.walk(path, onerror=refused):
        folders.sort()
        for name in sorted(names):
            file = Path(folder, name)
            state = file.lstat()
            if stat.S_ISREG(state.st_mode):
                yield CollectionMember(
                    file.relative_to(path).as_posix(), state.st_mtime_ns, partial(_opened, file)
                )


@contextmanager
def _opened(file: Path) -> Iterator[Readable]:
    with file.open("rb") as plain:
        if plain.read(len(journal.MAGIC)) != journal.MAGIC:
            plain.seek(0)
            yield plain
            return
    with journal.exported(file) as exported:
        yield exported


def _of_tar(path: Path, reports: Reports) -> Iterator[CollectionMember]:
    try:
        with opened(path, reports) as text, tarfile.open(fileobj=text, mode="r|") as archive:  # type: ignore[call-overload]
            for info in archive:
                if info.isreg():
                    yield CollectionMember(
                        info.name, int(info.mtime * 1e9), partial(_extracted, archive, info)
                    )
    except tarfile.TarError as error:
        reports.add(None, "", f"cannot be read as an archive: {error}")


def _extracted(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(info)
    assert file is not None, "it is a regular file"
    return file


def _of_zip(path: Path, reports: Reports) -> Iterator[CollectionMember]:
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    written = datetime(*info.date_time, tzinfo=UTC)
                    yield CollectionMember(
                        info.filename, int(written.timestamp() * 1e9), partial(archive.open, info)
                    )
    except (OSError, zipfile.BadZipFile) as error:
        reports.add(None, "", f"cannot be read as an archive: {_text_of(error)}")
