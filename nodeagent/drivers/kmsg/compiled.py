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
from nodeagent.service_folder import service_folder

KEPT: Final = 4
"""Files. Each set of tables has one; those in force longest ago go first."""

_SUFFIX: Final = ".hyperscan"

_FLAGS: Final = (
    hyperscan.HS_FLAG_PREFILTER
    | hyperscan.HS_FLAG_SINGLEMATCH
    | hyperscan.HS_FLAG_MULTILINE
    | hyperscan.HS_FLAG_ALLOWEMPTY
)
"""An over-approximation where Hyperscan lacks a construct, one report a pattern, ``^`` and ``$`` at each of
the joined lines, and so at those within a message too."""


def compiled(patterns: Mapping[int, str]) -> Any:
    """A database that scans one block at a time, and reports the patterns' keys.

    Raises ``hyperscan.error`` for what it cannot compile.
    """
    folder = service_folder("CACHE_DIRECTORY", os.environ)
    database = compile_anew(patterns) if folder is None else _of_cache(folder, patterns)
    database.scratch = hyperscan.Scratch(database)
    return database


def compile_anew(patterns: Mapping[int, str]) -> Any:
    """Without the cache. Raises ``hyperscan.error``."""
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[pattern.encode() for pattern in patterns.values()],
        ids=list(patterns),
        flags=[_FLAGS] * len(patterns),
    )
    give_back()
    return database


def _of_cache(folder: Path, patterns: Mapping[int, str]) -> Any:
    asked = repr((_FLAGS, sorted(patterns.items())))
    file = folder / f"{hashlib.sha256(asked.encode()).hexdigest()}{_SUFFIX}"
    database = _read(file)
    if database is None:
        database = compile_anew(patterns)
        _write(file, hyperscan.dumpb(database))
    return database


def _read(file: Path) -> Any:
    """None where there is no sound file."""
    try:
        database = hyperscan.loadb(file.read_bytes(), hyperscan.HS_MODE_BLOCK)
        file.touch()
    except FileNotFoundError:
        return None
    except (OSError, hyperscan.error) as error:
        _report(f"{file} cannot be used, the patterns are compiled again: {error}")
        return None
    return database


def _write(file: Path, serialized: bytes) -> None:
    try:
        # First, so that what full disks leave half written is removed too.
        for old in _oldest_first(file.parent)[: 1 - KEPT]:
            old.unlink(missing_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, suffix=_SUFFIX, delete=False) as beside:
            beside.write(serialized)
        Path(beside.name).replace(file)
    except OSError as error:
        _report(f"compiled patterns cannot be kept for the next start: {error}")


def _oldest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{_SUFFIX}"), key=lambda each: each.stat().st_mtime)


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
