"""Reads one TOML file with clear errors: not a file, unreadable, too large, not UTF-8, not TOML.

Whatever its text is, it becomes data that can be shown and stored, or a problem.
"""

import codecs
import os
import re
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeagent.toml import limits
from nodeagent.toml.lines import KeyLines, KeyPath, Lines
from nodeagent.toml.problem import Problem

FILE_LIMIT_BYTES = 2 * 1024 * 1024

_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_TABLE_TWICE = re.compile(r"Cannot declare \((.*?),?\) twice")


@dataclass(frozen=True, slots=True)
class Source:
    """A file that parsed: its name as it was given, what it holds, and where."""

    file: str
    data: Mapping[str, Any]
    lines: Lines

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


def read_source(path: Path, report: Callable[[Problem], None]) -> Source | None:
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
            refuse("stands twice in this file; keep one", line, key)
        else:
            refuse(f"not valid TOML: {reason}", line)
        return None
    except Exception as error:  # noqa: BLE001  the boundary of a library: what it cannot take is reported, whatever it is
        line, reason = limits.refusal(text, error)
        refuse(f"not valid TOML: {reason}", line)
        return None
    return within_limits(Source(str(path), data, KeyLines(text, data)), report)


def within_limits(source: Source, report: Callable[[Problem], None]) -> Source | None:
    """The same, or None after having reported what in it can be neither shown nor stored."""
    unfit = [source.problem(path, reason) for path, reason in limits.unfit(source.data)]
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
