"""The journal's export form (``journalctl -o export``): entries of fields, some of them binary.

An entry ends with an empty line. A field is ``NAME=text``, or where its data may hold anything: ``NAME``, a
newline, the data's length in 8 bytes, little end first, the data, a newline. Parses only; after damage it
cannot know where the next entry begins, and stops.
"""

import re
from collections.abc import Iterator
from typing import Final

from nodeagent.replay import journal_text
from nodeagent.replay.log import Given, LogLine
from nodeagent.replay.packing import Readable
from nodeagent.replay.reading import MAX_LINE_BYTES, Reports

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


def begins(beginning: bytes) -> bool:
    """Whether a file whose first bytes are these is an export."""
    return _BEGINNING.match(beginning) is not None


def read(file: Readable, reports: Reports, given: Given) -> Iterator[LogLine]:
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
        line = journal_text.read(data, report)
        if line is not None:
            yield line
        else:
            given.tally.others += 1
        number += 1


class _Damaged(Exception):
    """Says what was found where a field should be."""


class _Entries:
    """A window of the file, moved forward; of a field that nobody wants not even the data is kept."""

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
        """The data of a binary field; empty where nobody wants it."""
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
