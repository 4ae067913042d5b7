"""The systemd journal: its own files, its export and verbose forms, and single entries in JSON.

A file of the journal is read by systemd's journalctl, as the kernel's entries in export form.

**Entries.** Only fields that begin with ``_`` show the writer of an entry: a program chooses all others.
journald removes the name of a program from lines that user space wrote to the kernel log; it is put back
here, so that the line is the same as in the daemon.

**Export** (``journalctl -o export``). An entry ends with an empty line. A field is ``NAME=text``, or for any
data: ``NAME``, a newline, the length in 8 bytes, little end first, the data, a newline. After damage the
start of the next entry is unknown, so reading stops.

**Verbose** (``journalctl -o verbose``). A line with the time, then the indented fields. The further lines of
a field are indented more than any field name, so a logged text cannot become a field. The time is read from
the cursor, which has no zone.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from nodeagent.replay.log import GivenFile, LogLine
from nodeagent.replay.reading import MAX_LINE_BYTES, Peeked, Program, Readable, Reports

MAGIC: Final = b"LPKSHHRH"
_BY_KERNEL: Final = "_TRANSPORT=kernel"
_INSTEAD: Final = "a file of the journal itself: replay what journalctl -o export makes of it"


@contextmanager
def exported(path: Path) -> Iterator[Peeked]:
    """Raises PackedError where journalctl is not installed; reading raises it where that cannot read it."""
    command = [
        "journalctl",
        "--quiet",
        "--no-pager",
        "--output=export",
        f"--file={path}",
        "_TRANSPORT=kernel",
    ]
    program = Program(command, _INSTEAD)
    try:
        yield Peeked(program)
    finally:
        program.close()


_MICROSECOND_NS: Final = 1000
_KERNEL: Final = "kernel"


def is_entry(data: dict[str, Any]) -> bool:
    return "__REALTIME_TIMESTAMP" in data or "MESSAGE" in data


def read_entry(data: dict[str, Any], report: Callable[[str, str], None]) -> LogLine | None:
    """None for an entry of another program, or one that was reported by field and reason."""
    transport = data.get("_TRANSPORT")
    if transport not in (None, _KERNEL):
        return None
    stamp = data.get("__REALTIME_TIMESTAMP")
    if not isinstance(stamp, str) or not stamp.isdecimal():
        report("__REALTIME_TIMESTAMP", f"{stamp!r}: must be microseconds since 1970, in quotes")
        return None
    message = _text(data.get("MESSAGE"))
    if message is None:
        report("MESSAGE", "must be text, or a list of bytes")
        return None
    by_kernel = data.get("SYSLOG_FACILITY", "0") == "0"
    trusted = transport == _KERNEL and by_kernel
    return LogLine(
        int(stamp) * _MICROSECOND_NS, message if by_kernel else _writer(data) + message, trusted=trusted
    )


def _writer(data: dict[str, Any]) -> str:
    """``NAME[PID]: ``, as the program began its line."""
    name, pid = data.get("SYSLOG_IDENTIFIER"), data.get("SYSLOG_PID")
    if not isinstance(name, str):
        return ""
    return f"{name}[{pid}]: " if isinstance(pid, str) else f"{name}: "


def _text(message: object) -> str | None:
    """The journal writes what is no UTF-8 as a list of numbers, and what is too long as null."""
    match message:
        case str():
            return message
        case None:
            return ""
        case list() if all(isinstance(byte, int) and 0 <= byte <= 255 for byte in message):
            return bytes(message).decode("utf-8", "backslashreplace")
        case _:
            return None


_BEGINNING: Final = re.compile(rb"\n*_[A-Z0-9_]+=")
_NAME: Final = re.compile(rb"[A-Z_][A-Z0-9_]{0,63}")
_TEXT_ENTRY: Final = re.compile(rb"(?:[A-Z0-9_]++=[^\n]*+\n)++\n")
_WANTED: Final = {
    name.encode(): name
    for name in (
        "__REALTIME_TIMESTAMP",
        "_TRANSPORT",
        "SYSLOG_FACILITY",
        "SYSLOG_IDENTIFIER",
        "SYSLOG_PID",
        "MESSAGE",
    )
}
_WANTED_TEXT: Final = re.compile(rb"^(" + rb"|".join(_WANTED) + rb")=([^\n]*+)", re.MULTILINE)
_CHUNK_BYTES: Final = 1 << 18
_LENGTH_BYTES: Final = 8


def begins_export(beginning: bytes) -> bool:
    """Whether a file whose first bytes are these is an export."""
    return _BEGINNING.match(beginning) is not None


def read_export(file: Readable, reports: Reports, given: GivenFile) -> Iterator[LogLine]:
    """What the kernel logged; what is damaged is reported by entry and byte, and ends it."""
    entries = _Entries(file)
    number, begun = 1, 0

    def report(field: str, reason: str) -> None:
        reports.add(None, f"entry {number}, byte {begun}: {field}", reason)

    while True:
        begun = entries.position
        try:
            fields = entries.take()
        except _Damaged as damaged:
            reports.add(None, f"entry {number}, byte {entries.position}", str(damaged))
            return
        if fields is None:
            return
        data = {_WANTED[name]: value.decode("utf-8", "backslashreplace") for name, value in fields.items()}
        line = read_entry(data, report)
        if line is not None:
            yield line
        else:
            given.tally.others += 1
        number += 1


class _Damaged(Exception):
    """Reports what was found in place of a field."""


class _Entries:
    """A window of the file, moved forward; the data of an unused field is not kept."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self._window = b""
        self._at = 0
        self._before = 0

    @property
    def position(self) -> int:
        """Bytes of the file taken so far."""
        return self._before + self._at

    def take(self) -> dict[bytes, bytes] | None:
        """The wanted fields of the next entry, None at the file's end. Raises _Damaged."""
        if text := _TEXT_ENTRY.match(self._window, self._at):
            fields = dict(_WANTED_TEXT.findall(self._window, self._at, text.end()))
            self._at = text.end()
            return fields
        return self._take_by_field()

    def _take_by_field(self) -> dict[bytes, bytes] | None:
        fields: dict[bytes, bytes] = {}
        begun = False
        while (line := self._line()) is not None:
            if not line:
                if begun:
                    return fields
                continue
            begun = True
            name, is_text, value = line.partition(b"=")
            if not _NAME.fullmatch(name):
                raise _Damaged(f"{line[:40]!r}: must be a field such as MESSAGE=text")
            if not is_text:
                value = self._data(name)
            if name in _WANTED:
                fields[name] = value
        return fields if begun else None

    def _line(self) -> bytes | None:
        """Without its newline; None at the file's end."""
        while (end := self._window.find(b"\n", self._at)) < 0:
            if len(self._window) - self._at > MAX_LINE_BYTES:
                raise _Damaged(f"a line longer than {MAX_LINE_BYTES} bytes")
            if not self._more():
                if self._at == len(self._window):
                    return None
                raise _Damaged("the file ends within a field")
        line = self._window[self._at : end]
        self._at = end + 1
        return line

    def _data(self, name: bytes) -> bytes:
        """The data of a binary field; empty if it is not used."""
        length = int.from_bytes(self._exactly(_LENGTH_BYTES, name), "little")
        if name not in _WANTED:
            self._skip(length, name)
            data = b""
        elif length > MAX_LINE_BYTES:
            raise _Damaged(f"{name.decode()}: {length} bytes long; at most {MAX_LINE_BYTES} are read")
        else:
            data = self._exactly(length, name)
        if self._exactly(1, name) != b"\n":
            raise _Damaged(f"{name.decode()}: no newline after its {length} bytes")
        return data

    def _exactly(self, count: int, name: bytes) -> bytes:
        while len(self._window) - self._at < count:
            self._more_of(name)
        data = self._window[self._at : self._at + count]
        self._at += count
        return data

    def _skip(self, count: int, name: bytes) -> None:
        while (there := len(self._window) - self._at) < count:
            self._at += there
            count -= there
            self._more_of(name)
        self._at += count

    def _more_of(self, name: bytes) -> None:
        if not self._more():
            raise _Damaged(f"{name.decode()}: the file ends within its data")

    def _more(self) -> bool:
        chunk = self._file.read(_CHUNK_BYTES)
        self._before += self._at
        self._window = self._window[self._at :] + chunk
        self._at = 0
        return bool(chunk)


_ENTRY: Final = re.compile(
    r"(?:\S+ )?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* \S+ \[s=[0-9a-f]+;.*;t=([0-9a-f]{1,15});"
)
_FIELD: Final = re.compile(r"    ([A-Z_][A-Z0-9_]{0,63})=(.*)")
_MARGIN: Final = len("    =")
_LONGEST_VALUE: Final = 8192


def begins_verbose(first: str) -> bool:
    """Whether a file whose first line is this one is verbose."""
    return _ENTRY.match(first) is not None


def read_verbose(blocks: Iterable[Sequence[str]], reports: Reports, given: GivenFile) -> Iterator[LogLine]:
    """What the kernel logged. An entry that lacks what each has is reported by the line where it begins."""
    entry: dict[str, str] = {}
    name, begun, number = "", 0, 0
    for block in blocks:
        for text in block:
            number += 1
            if head := _ENTRY.match(text):
                yield from _line_of(entry, begun, reports, given)
                entry, name, begun = {"__REALTIME_TIMESTAMP": str(int(head[1], 16))}, "", number
            elif field := _FIELD.match(text):
                name = field[1]
                entry[name] = field[2]
            elif name and text.startswith(margin := " " * (len(name) + _MARGIN)):
                entry[name] = f"{entry[name]}\n{text.removeprefix(margin)}"[:_LONGEST_VALUE]
    yield from _line_of(entry, begun, reports, given)


def _line_of(entry: dict[str, str], begun: int, reports: Reports, given: GivenFile) -> Iterator[LogLine]:
    if not entry:
        return
    line = read_entry(entry, lambda field, reason: reports.add(begun, field, reason))
    if line is None:
        given.tally.others += 1
    else:
        yield line
