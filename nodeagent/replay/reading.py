"""Opens a file to replay: unpacks it, decodes it, and hands out bounded lines without colours.

A new packer is a new row. The bytes are UTF-8 and are not kept. A file that cannot be unpacked is an error
that names the missing program. Lines are not parsed here.
"""

import bz2
import codecs
import gzip
import lzma
import re
import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Final, Protocol, TypeVar

from nodeagent.toml.problem import Problem, Problems

BEGINNING_BYTES: Final = 4096
_PIECE_BYTES: Final = 1 << 18
_MOST_LAYERS: Final = 3
_STOPS_WITHIN_S: Final = 10


class Readable(Protocol):
    """Bytes in order, once."""

    def read(self, size: int, /) -> bytes: ...


class PackedError(OSError):
    """It cannot be unpacked here; the text is what would help."""


PACKING_ERRORS: Final = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What reading a damaged file raises."""


class Peeked:
    """A file whose ``beginning`` was looked at."""

    def __init__(self, file: Readable, size: int = BEGINNING_BYTES) -> None:
        self._file = file
        self.beginning = b""
        while len(self.beginning) < size and (piece := file.read(size - len(self.beginning))):
            self.beginning += piece
        self._left = self.beginning

    def read(self, size: int, /) -> bytes:
        if self._left:
            piece, self._left = self._left[:size], self._left[size:]
            return piece
        return self._file.read(size)


@dataclass(frozen=True, slots=True)
class _Packer:
    name: str
    magic: bytes
    opened: Callable[[Readable], Readable]


def _by_program(program: str) -> Callable[[Readable], Readable]:
    """For what the Python of the oldest system that this runs on has no module."""
    return lambda file: Program([program, "-dcq"], f"packed by {program}: unpack it first", file)


class Program:
    """What a program writes, fed with a file where there is one. ``instead``: what to do without it.

    Raises PackedError where it is not installed.
    """

    def __init__(self, command: list[str], instead: str, file: Readable | None = None) -> None:
        if shutil.which(command[0]) is None:
            raise PackedError(f"{instead}; {command[0]}, which would do it here, is not installed")
        self._name = command[0]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if file is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._failed: BaseException | None = None
        self._feeder = Thread(target=self._feed, args=(file,), daemon=True)
        self._feeder.start()

    def read(self, size: int, /) -> bytes:
        """Raises PACKING_ERRORS where the file is damaged."""
        assert self._process.stdout is not None
        if piece := self._process.stdout.read(size):
            return piece
        assert self._process.stderr is not None
        complaint = self._process.stderr.read().decode(errors="replace").strip()
        self._feeder.join()
        if self._failed is not None:
            raise self._failed
        if self._process.wait(_STOPS_WITHIN_S):
            raise PackedError(f"{self._name}: {complaint or 'it failed without a reason'}")
        return b""

    def close(self) -> None:
        self._process.kill()
        self._process.wait(_STOPS_WITHIN_S)
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        self._feeder.join()

    def _feed(self, file: Readable | None) -> None:
        if file is None or self._process.stdin is None:
            return
        try:
            with suppress(BrokenPipeError), self._process.stdin as sink:
                while piece := file.read(_PIECE_BYTES):
                    sink.write(piece)
        except PACKING_ERRORS as error:
            self._failed = error


def _gzip(file: Readable) -> Readable:
    return gzip.GzipFile(fileobj=file)  # type: ignore[call-overload,no-any-return]  # it only reads


_PACKERS: Final = (
    _Packer("gzip", b"\x1f\x8b", _gzip),
    _Packer("bzip2", b"BZh", bz2.BZ2File),  # type: ignore[arg-type]
    _Packer("xz", b"\xfd7zXZ\0", lzma.LZMAFile),  # type: ignore[arg-type]
    _Packer("zstd", b"\x28\xb5\x2f\xfd", _by_program("zstd")),
    _Packer("lz4", b"\x04\x22\x4d\x18", _by_program("lz4")),
)
_REFUSED: Final = {b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!\x1a\x07": "rar", b"\x1f\x9d": "compress"}
"""How such a file begins. Read as text it would be a log in which nothing happened."""


class _Utf16:
    """Text of Windows, as UTF-8."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-16")("backslashreplace")

    def read(self, size: int, /) -> bytes:
        while piece := self._file.read(size):
            if text := self._decoder.decode(piece):
                return text.encode("utf-8", "backslashreplace")
        return self._decoder.decode(b"", final=True).encode("utf-8", "backslashreplace")


@contextmanager
def unpacked(file: Readable) -> Iterator[Peeked]:
    """The text of a file, unpacked where it is packed. Raises PackedError where it cannot be; reading it
    raises PACKING_ERRORS where it is damaged.
    """
    programs = []
    try:
        peeked = Peeked(file)
        for _ in range(_MOST_LAYERS):
            packer = next((each for each in _PACKERS if peeked.beginning.startswith(each.magic)), None)
            if packer is None:
                break
            inner = packer.opened(peeked)
            if isinstance(inner, Program):
                programs.append(inner)
            peeked = Peeked(inner)
        yield _decoded(peeked)
    finally:
        for program in reversed(programs):
            program.close()


def _decoded(peeked: Peeked) -> Peeked:
    for magic, name in _REFUSED.items():
        if peeked.beginning.startswith(magic):
            raise PackedError(f"packed by {name}: unpack it first")
    if peeked.beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Peeked(_Utf16(peeked))
    if peeked.beginning.startswith(codecs.BOM_UTF8):
        peeked.read(len(codecs.BOM_UTF8))
        return Peeked(peeked)
    return peeked


MAX_LINE_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 1 << 18

Part = TypeVar("Part")

_CARRIAGE_RETURNS: Final = re.compile(rb"^\r+|\r+$", re.MULTILINE)
_SCREEN: Final = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()*+][0-9A-Za-z]|[0-9=>A-Za-z])"
)
"""Colours, and what else is for a screen: ECMA-48, and the links of terminals."""

_SCREEN_AS_TEXT: Final = re.compile(rb"(?:\^\[|#033|\\(?:033|x1[bB]|e|E|u001[bB]))\[[0-9;]{0,20}[mK]")
"""The same, where less, rsyslog or a shell has made the character visible: ``^[[31m``, ``#033[31m``."""
_MADE_VISIBLE: Final = tuple(
    sign.encode() + b"["
    for sign in ("^[", "#033", r"\033", r"\x1b", r"\x1B", r"\e", r"\E", r"\u001b", r"\u001B")
)


class ReplayError(Exception):
    """The file cannot be replayed; str() is one line for each problem."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(slots=True)
class Reports:
    """Gathers what is wrong with one file, so that all of it is reported at once."""

    file: str
    problems: Problems

    def add(self, line: int | None, key: str, reason: str) -> None:
        self.problems.add(Problem(file=self.file, line=line, key=key, reason=reason))

    def raise_any(self) -> None:
        if self.problems:
            raise ReplayError(self.problems.found())


@contextmanager
def opened(path: Path, reports: Reports) -> Iterator[Peeked]:
    """The file's bytes, unpacked. Raises ReplayError where it cannot be read, also later while it is."""
    try:
        with path.open("rb") as file, unpacked(file) as text:
            yield text
    except PACKING_ERRORS as error:
        _report_unreadable(error, reports)


def readable(parts: Iterator[Part], reports: Reports) -> Iterator[Part]:
    """What is read of an opened file elsewhere than where it was opened. Raises ReplayError as that does."""
    try:
        yield from parts
    except PACKING_ERRORS as error:
        _report_unreadable(error, reports)


def _report_unreadable(error: BaseException, reports: Reports) -> None:
    reports.add(None, "", f"cannot be read: {getattr(error, 'strerror', None) or error}")
    reports.raise_any()


def lines(file: Readable, too_long: Callable[[int], None]) -> Iterator[list[str]]:
    """The lines of one block after the other, each ended by a newline or by the file's end.

    What is no UTF-8 becomes ``\\xNN``. A line beyond MAX_LINE_BYTES is reported by its number, and is empty
    here.
    """
    number, rest = 1, b""
    while block := file.read(_BLOCK_BYTES):
        whole, newline, tail = block.rpartition(b"\n")
        if newline:
            texts = _texts(rest + whole, number, too_long)
            number += len(texts)
            yield texts
            rest = tail
        else:
            # Of a line without an end no more is kept than shows that it is too long.
            rest = (rest + tail)[: MAX_LINE_BYTES + 1]
    if rest:
        yield _texts(rest, number, too_long)


def strictly(reports: Reports) -> Callable[[int], None]:
    """A line that is too long makes the file wrong."""
    return lambda number: reports.add(number, "", f"longer than {MAX_LINE_BYTES} bytes")


def without_screen(text: bytes) -> bytes:
    """Without colours and their like."""
    if b"\x1b" in text:
        text = _SCREEN.sub(b"", text)
    return _SCREEN_AS_TEXT.sub(b"", text) if any(sign in text for sign in _MADE_VISIBLE) else text


def _texts(block: bytes, first_number: int, too_long: Callable[[int], None]) -> list[str]:
    """Only the first line can be longer than a block, and so than a line may be."""
    first_bytes = block.find(b"\n") if b"\n" in block else len(block)
    if first_bytes > MAX_LINE_BYTES:
        too_long(first_number)
        block = block[first_bytes:]
    if b"\r" in block:
        block = _CARRIAGE_RETURNS.sub(b"", block)
    block = without_screen(block)
    if b"\0" in block:  # what a crash leaves where the disk had no text yet
        block = block.replace(b"\0", b"")
    return block.decode("utf-8", "backslashreplace").split("\n")
