"""Patterns as Hyperscan compiles them, kept on the disk for the next start.

The compiler takes a second of processor time and ten MiB for the shipped patterns; reading its result takes a
millisecond. A worker of the kernel log that was killed sees the log again that much sooner.

Files are kept only where a service manager gives a folder for them ($CACHE_DIRECTORY, systemd.exec(5)). They
may be deleted at any time. One that cannot be read or written costs the compiler's time and nothing else, and
is reported on stderr, which the daemon logs. Hyperscan itself refuses what is torn, and what another version
of it or another kind of processor has written (hs_deserialize_database).
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import hyperscan

from nodeagent.memory import give_back

FOLDER_VARIABLE: Final = "CACHE_DIRECTORY"

KEPT: Final = 4
"""Files. Each set of tables has one; those in force longest ago go first."""

_SUFFIX: Final = ".hyperscan"


def compiled(expressions: Mapping[int, str], flags: int) -> Any:
    """A database that scans one block at a time. Raises ``hyperscan.error`` for what it cannot compile."""
    file = _file(expressions, flags)
    database = _read(file)
    if database is None:
        database = _compile(expressions, flags)
        _write(file, hyperscan.dumpb(database))
    database.scratch = hyperscan.Scratch(database)
    return database


def _file(expressions: Mapping[int, str], flags: int) -> Path | None:
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return None
    # systemd joins several folders by colons: ours is the first.
    asked = repr((flags, sorted(expressions.items())))
    return Path(folder.partition(":")[0]) / f"{hashlib.sha256(asked.encode()).hexdigest()}{_SUFFIX}"


def _compile(expressions: Mapping[int, str], flags: int) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[expression.encode() for expression in expressions.values()],
        ids=list(expressions),
        flags=[flags] * len(expressions),
    )
    give_back()
    return database


def _read(file: Path | None) -> Any:
    """None where there is no sound file."""
    if file is None:
        return None
    try:
        database = hyperscan.loadb(file.read_bytes(), hyperscan.HS_MODE_BLOCK)
        file.touch()
    except FileNotFoundError:
        return None
    except (OSError, hyperscan.error) as error:
        _report(f"{file} cannot be used, the patterns are compiled again: {error}")
        return None
    return database


def _write(file: Path | None, serialized: bytes) -> None:
    if file is None:
        return
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as beside:
            beside.write(serialized)
        Path(beside.name).replace(file)
        for old in sorted(file.parent.glob(f"*{_SUFFIX}"), key=lambda each: each.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)
    except OSError as error:
        _report(f"compiled patterns cannot be kept for the next start: {error}")


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
