"""Reads a TOML file, or the files of a folder, with clear errors: unreadable, too large, not UTF-8, not TOML.

``tomllib`` and ``json`` accept more than can be shown, compared and stored: numbers of any size, and any
depth. What is beyond the limits here is a problem. What a value means is not checked here.
"""

import codecs
import os
import re
import stat
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodeagent.toml.lines import KeyPath, LineNumbers, TomlLines
from nodeagent.toml.problem import Problem

DEEPEST: Final = 32
LEAST: Final = -(2**63)
GREATEST: Final = 2**63 - 1

TOO_DEEP: Final = f"nested too deeply; at most {DEEPEST} levels are read"
TOO_LARGE: Final = f"a whole number out of range; it must be from {LEAST} to {GREATEST}"

_LONG_NUMBER: Final = re.compile(r"[0-9][0-9_]{639,}")
"""Python refuses numbers longer than ``sys.set_int_max_str_digits``, which is at least 640."""


def out_of_limits(data: object) -> Iterator[tuple[KeyPath, str]]:
    """What of it cannot be taken: where, and why."""
    path, pending = list[str | int](), [iter(_inside(data) or ())]
    while pending:
        for key, value in pending[-1]:
            if isinstance(value, int):
                if not LEAST <= value <= GREATEST:
                    yield (*path, key), TOO_LARGE
            elif (inner := _inside(value)) is not None:
                if len(pending) < DEEPEST:
                    path.append(key)
                    pending.append(iter(inner))
                    break
                yield (*path, key), TOO_DEEP
        else:
            pending.pop()
            del path[-1:]


def parser_refusal(text: str, error: Exception) -> tuple[int | None, str]:
    """What is wrong with a text that its parser failed over, and on which line, where one is to blame."""
    if isinstance(error, RecursionError):
        lines = [line.count("[") + line.count("{") for line in text.split("\n")]
        return (lines.index(max(lines)) + 1 if max(lines) > DEEPEST else None), TOO_DEEP
    if (number := _LONG_NUMBER.search(text)) is not None:
        return text.count("\n", 0, number.start()) + 1, TOO_LARGE
    return None, f"{type(error).__name__}: {error}"


def _inside(value: object) -> Iterable[tuple[str | int, object]] | None:
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list) else None


FILE_LIMIT_BYTES = 2 * 1024 * 1024

_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_TABLE_TWICE = re.compile(r"Cannot declare \((.*?),?\) twice")


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """A file that parsed: its name as it was given, what it holds, and where."""

    file: str
    data: Mapping[str, Any]
    lines: LineNumbers

    def problem(self, path: KeyPath, reason: str) -> Problem:
        return Problem(file=self.file, line=self.lines.of(path), key=dotted(path), reason=reason)

    def place(self, path: KeyPath) -> str:
        """``FILE:LINE`` of the key."""
        return f"{self.file}:{self.lines.of(path) or 1}"


def dotted(path: KeyPath) -> str:
    """The path as a person reads it: ``frequency[0].times``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_text(path: Path, report: Callable[[Problem], None]) -> str | None:
    """The file's text with plain line ends, or None after having reported why there is none."""

    def refuse(reason: str, line: int | None = None) -> None:
        report(Problem(file=str(path), line=line, key="", reason=reason))

    try:
        raw = _read_bytes(path)
    except OSError as error:
        refuse(f"cannot be read: {error.strerror or error}")
        return None
    except ValueError as error:
        refuse(str(error))
        return None
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        refuse("in UTF-16; save it as UTF-8", 1)
        return None
    try:
        # Editors of other systems put its mark before UTF-8, which means nothing there.
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        refuse(f"not UTF-8: byte 0x{error.object[error.start]:02x}", line)
        return None
    return text.replace("\r\n", "\n")


def read_source(path: Path, report: Callable[[Problem], None]) -> ParsedFile | None:
    """The parsed file, or None after having reported why there is none."""

    def refuse(reason: str, line: int | None = None, key: str = "") -> None:
        report(Problem(file=str(path), line=line, key=key, reason=reason))

    text = read_text(path, report)
    if text is None:
        return None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _TOML_PLACE.search(message)
        line = int(place[1]) if place and place[1] else None
        reason = _TOML_PLACE.sub("", message)
        if twice := _TABLE_TWICE.match(reason):
            key = ".".join(part.strip().strip("'\"") for part in twice[1].split(", "))
            refuse("appears twice in this file; keep one", line, key)
        else:
            refuse(f"not valid TOML: {reason}", line)
        return None
    except Exception as error:  # noqa: BLE001  the boundary of a library: what it cannot take is reported, whatever it is
        line, reason = parser_refusal(text, error)
        refuse(f"not valid TOML: {reason}", line)
        return None
    return within_limits(ParsedFile(str(path), data, TomlLines(text, data)), report)


def within_limits(source: ParsedFile, report: Callable[[Problem], None]) -> ParsedFile | None:
    """The same, or None after having reported what in it can be neither shown nor stored."""
    unfit = [source.problem(path, reason) for path, reason in out_of_limits(source.data)]
    for problem in unfit:
        report(problem)
    return None if unfit else source


def _read_bytes(path: Path) -> bytes:
    # O_NONBLOCK: opening a pipe must not wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a file")
        raw = file.read(FILE_LIMIT_BYTES + 1)
    if len(raw) > FILE_LIMIT_BYTES:
        raise ValueError(f"larger than {FILE_LIMIT_BYTES // (1024 * 1024)} MiB")
    return raw


def files_of(
    folder: Path, endings: Collection[str], most: int, kind: str, report: Callable[[Problem], None]
) -> list[Path]:
    """The files with one of the endings, dot files left out; none after having reported why.

    ``kind`` names what the files are, in the plural: ``tables``.
    """

    def refuse(file: str, reason: str) -> list[Path]:
        report(Problem(file=file, line=None, key="", reason=reason))
        return []

    try:
        files = sorted(
            path for path in folder.iterdir() if path.suffix in endings and not path.name.startswith(".")
        )
    except OSError as error:
        return refuse(str(folder), f"cannot be read as a folder of {kind}: {error.strerror or error}")
    for path in files:
        if not str(path).isprintable():
            return refuse(ascii(str(path)), "its name holds what cannot be shown or is not UTF-8; rename it")
    if len(files) > most:
        return refuse(str(folder), f"holds {len(files)} {kind}; at most {most} are read")
    return files
