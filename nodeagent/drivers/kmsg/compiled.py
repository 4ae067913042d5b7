"""Patterns as Hyperscan compiles them, kept on the disk for the next start.

The compiler takes a second of processor time and ten MiB for the shipped patterns; reading its result takes a
millisecond. A worker of the kernel log that was killed sees the log again that much sooner.

``nodeagent.system.directories`` says where, and when not. Hyperscan itself refuses what is torn, and what
another version of it or another kind of processor has written (hs_deserialize_database).
"""

import sys
from collections.abc import Mapping
from typing import Any, Final

import hyperscan

from nodeagent.system.directories import CacheFiles, cache_files
from nodeagent.system.memory import give_back

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
    files = cache_files(_SUFFIX, "compiled patterns", _report)
    database = compile_anew(patterns) if files is None else _kept(files, patterns)
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


def _kept(files: CacheFiles, patterns: Mapping[int, str]) -> Any:
    asked = repr((_FLAGS, sorted(patterns.items()))).encode()
    database = files.read(asked, lambda data: hyperscan.loadb(data, hyperscan.HS_MODE_BLOCK), hyperscan.error)
    if database is None:
        database = compile_anew(patterns)
        files.write(asked, hyperscan.dumpb(database))
    return database


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
