"""Rows out of a damaged SQLite file, page by page: whatever of it is left, in whatever order it lies.

SQLite follows pointers from the file's beginning, and one wrong byte there hides all the rest from it. Here
every page is taken for a leaf of some table, and every cell on it for a row: only the file's
format (sqlite.org/fileformat2.html, sections 1.6, 2.1 and 4.1) is used. It gives too much rather than
too little, old versions and garbage among it; the caller decides which rows are true. It writes nothing.
"""

import mmap
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.store.disk.writer import log_of
from nodeagent.store.errors import StoreDamagedError
from nodeagent.store.layout import Row

PAGE_BYTES: Final = 4096
"""SQLite's default, which every store has."""

MAX_PAYLOAD_BYTES: Final = 64 * 1024 * 1024

_FILE_HEADER_BYTES: Final = 100
_HEADER: Final = re.compile(rb"SQLite format 3\0\x10\0[\1\2][\1\2]\0\x40\x20\x20.{76}", re.DOTALL)
"""Sections 1.3.1 to 1.3.5: pages of 4096 bytes, either journal, nothing reserved, and three constants."""
_LOG_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24
_INDEX_HEADER_BYTES: Final = 48
_LEAF_HEADER_BYTES: Final = 8
_LEAF: Final = 13
_MOST_FRAGMENTS: Final = 60
_MOST_INLINE: Final = PAGE_BYTES - 35
_LEAST_INLINE: Final = (PAGE_BYTES - 12) * 32 // 255 - 23
_ON_OVERFLOW_PAGE: Final = PAGE_BYTES - 4
_INTEGER_BYTES: Final = (0, 1, 2, 3, 4, 6, 8)
_FLOAT: Final = 7
_ZERO, _ONE = 8, 9
_FIRST_BYTES: Final = 12
"""Even serial types from here on are bytes, odd ones texts."""


@dataclass(frozen=True, slots=True)
class Carved:
    """A row's number, and its values as they lie there: NULL where the number is the key."""

    rowid: int
    values: Row


Pages = Callable[[int], bytes | None]


class _NoRowError(Exception):
    """These bytes are no row."""


def carve(path: Path) -> Iterator[Carved]:
    """Every row of the database and its log, in the order of their writing as far as that is known.

    Raises OSError where a file cannot be read; one that is not there is empty.
    """
    with ExitStack() as stack:
        database = _mapped(stack, path)
        log = _mapped(stack, log_of(path))
        frames = list(_frames(log))
        newest = dict(frames)

        def page(number: int) -> bytes | None:
            if (at := newest.get(number)) is not None:
                return log[at : at + PAGE_BYTES]
            at = (number - 1) * PAGE_BYTES
            return database[at : at + PAGE_BYTES] if 0 <= at < len(database) else None

        for at in range(0, len(database), PAGE_BYTES):
            skipped = _FILE_HEADER_BYTES if at == 0 else 0
            yield from _rows(database[at : at + PAGE_BYTES], skipped, page)
        for number, at in frames:
            skipped = _FILE_HEADER_BYTES if number == 1 else 0
            yield from _rows(log[at : at + PAGE_BYTES], skipped, page)


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a write-ahead log, behind the frames that SQLite took from it: how many commits end there,
    and whether anything follows the last of them.
    """

    commits: int
    goes_on: bool


def frames_taken(index: Path) -> int:
    """How many frames of the log SQLite has taken, by its index of them (sqlite.org/walformat.html, section
    2.1).

    Raises OSError where it cannot be read.
    """
    with index.open("rb") as file:
        header = file.read(_INDEX_HEADER_BYTES)
    return int(struct.unpack_from("=I", header, 16)[0]) if len(header) == _INDEX_HEADER_BYTES else 0


def behind(path: Path, frames: int) -> LogEnd:
    """What lies in the log of a database behind its first frames. Raises OSError where it cannot be read.

    SQLite stops reading at the first frame whose checksum is wrong, and does not report what follows (section
    4.1).
    """
    with ExitStack() as stack:
        log = _mapped(stack, log_of(path))
        left = list(_frames(log))[frames:]
        sizes = [struct.unpack_from(">I", log, at - _FRAME_HEADER_BYTES + 4)[0] for _, at in left]
    return LogEnd(sum(1 for size in sizes if size), bool(sizes) and not sizes[-1])


def _mapped(stack: ExitStack, path: Path) -> "mmap.mmap | bytes":
    try:
        file = stack.enter_context(path.open("rb"))
    except FileNotFoundError:
        return b""
    if file.seek(0, 2) == 0:
        return b""
    return stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def schema_version(path: Path) -> int:
    """The schema version in the header of the file, by its newest page 1 (section 1.3.17).

    Raises StoreDamagedError for a header that no store of ours has, and OSError.
    """
    with ExitStack() as stack:
        database, log = _mapped(stack, path), _mapped(stack, log_of(path))
        places = [at for number, at in _frames(log) if number == 1]
        header = log[places[-1] :][:_FILE_HEADER_BYTES] if places else database[:_FILE_HEADER_BYTES]
    if not _HEADER.match(header):
        raise StoreDamagedError("its header is none of a store")
    return int(struct.unpack_from(">I", header, 60)[0])


def _frames(log: "mmap.mmap | bytes") -> Iterator[tuple[int, int]]:
    """The pages in the log, oldest first: the page's number and where it lies.

    Each of those of the newest round has its salts. Their checksums, each of which
    hangs on all before it, are left aside: the rows prove themselves.
    """
    salts = None
    for at in range(_LOG_HEADER_BYTES, len(log) - _FRAME_HEADER_BYTES, _FRAME_HEADER_BYTES + PAGE_BYTES):
        number, _, *found = struct.unpack_from(">4I", log, at)
        salts = salts or found
        if found == salts:
            yield number, at + _FRAME_HEADER_BYTES


def _rows(page: bytes, skipped: int, pages: Pages) -> Iterator[Carved]:
    """The rows of a page that is marked as a leaf, or whose header else could be a leaf's: one of its bytes
    may be damaged.

    Each pointer up to where the cells begin is followed, also beyond the count of them.
    """
    if len(page) < PAGE_BYTES:
        page = page.ljust(PAGE_BYTES, b"\0")
    first = skipped + _LEAF_HEADER_BYTES
    kind, _, count, begin, fragments = struct.unpack_from(">BHHHB", page, skipped)
    end = first + 2 * count
    looks_sound = end <= begin <= PAGE_BYTES and count > 0 and fragments <= _MOST_FRAGMENTS
    if kind != _LEAF and not looks_sound:
        return
    for at in range(first, min(max(end, begin if begin <= PAGE_BYTES else 0), PAGE_BYTES - 1), 2):
        (pointer,) = struct.unpack_from(">H", page, at)
        if first <= pointer < PAGE_BYTES:
            try:
                yield _cell(page, pointer, pages)
            except (_NoRowError, IndexError, UnicodeDecodeError, struct.error):
                continue


def _cell(page: bytes, at: int, pages: Pages) -> Carved:
    size, at = _varint(page, at)
    rowid, at = _varint(page, at)
    if not 0 < size <= MAX_PAYLOAD_BYTES:
        raise _NoRowError
    inline = size
    if size > _MOST_INLINE:
        inline = _LEAST_INLINE + (size - _LEAST_INLINE) % _ON_OVERFLOW_PAGE
        if inline > _MOST_INLINE:
            inline = _LEAST_INLINE
    payload = page[at : at + inline]
    kinds, begin = _kinds(payload, size)
    if inline < size:
        (following,) = struct.unpack_from(">I", page, at + inline)
        payload += _overflow(following, size - inline, pages)
    return Carved(rowid if rowid < 2**63 else rowid - 2**64, _values(payload, begin, kinds))


def _overflow(number: int, size: int, pages: Pages) -> bytes:
    parts: list[bytes] = []
    while size > 0:
        page = pages(number)
        if page is None or len(page) < PAGE_BYTES:
            raise _NoRowError
        (number,) = struct.unpack_from(">I", page, 0)
        parts.append(page[4 : 4 + min(size, _ON_OVERFLOW_PAGE)])
        size -= _ON_OVERFLOW_PAGE
    return b"".join(parts)


def _kinds(payload: bytes, size: int) -> tuple[list[int], int]:
    """The serial types of the values, and where the values begin; they fill the row of that size exactly."""
    begin, at = _varint(payload, 0)
    kinds = []
    while at < begin:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    if at != begin or begin + sum(map(_size, kinds)) != size:
        raise _NoRowError
    return kinds, begin


def _size(kind: int) -> int:
    if kind < _FLOAT:
        return _INTEGER_BYTES[kind]
    if kind in (_ZERO, _ONE):
        return 0
    if kind < _FIRST_BYTES:  # a float, which no table has, or one of SQLite's own
        raise _NoRowError
    return (kind - _FIRST_BYTES) // 2


def _values(payload: bytes, at: int, kinds: list[int]) -> Row:
    values: list[int | str | bytes | None] = []
    for kind in kinds:
        raw = payload[at : at + _size(kind)]
        at += len(raw)
        if kind == 0:
            values.append(None)
        elif kind < _FLOAT:
            values.append(int.from_bytes(raw, "big", signed=True))
        elif kind < _FIRST_BYTES:
            values.append(kind - _ZERO)
        else:
            values.append(raw.decode() if kind % 2 else raw)
    return tuple(values)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(9):
        byte = data[at + place]
        if place == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    raise _NoRowError
