"""Loads tables as ``load`` does, and keeps the result for the next start.

Half a second of processor time goes into reading the shipped tables and proving that each pattern is anchored
and bounded; reading the kept catalog takes a fiftieth of it. What is kept counts only for the same files with
the same content, the same settings and the same code that judges them. Tables that were refused are not kept.
"""

import hashlib
import importlib.resources
import json
import logging
from collections.abc import Iterator, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import msgspec

from nodeagent.core.catalog.settings import Settings
from nodeagent.system.directories import cache_files
from nodeagent.tables import size
from nodeagent.tables.canonical import decode_catalog, encode_catalog
from nodeagent.tables.layers import table_files
from nodeagent.tables.load import Loaded, load_catalog

log = logging.getLogger(__name__)

_SUFFIX: Final = ".catalog"
_JUDGES: Final = ("nodeagent.core.catalog", "nodeagent.core.model", "nodeagent.tables", "nodeagent.toml")
"""The code that decides what becomes of a table."""


def load_cached(folders: Sequence[Path], settings: Settings) -> Loaded:
    """As ``load_catalog``. Raises TablesError."""
    files = cache_files(_SUFFIX, "tables that were loaded", log.warning)
    asked = None if files is None else _asked(folders, settings)
    if files is None or asked is None:
        return load_catalog(folders, settings)
    kept = files.read(asked, _decoded, ValueError)
    if kept is not None:
        return kept
    loaded = load_catalog(folders, settings)
    # Files that changed meanwhile would be kept under what they were before.
    if _asked(folders, settings) == asked:
        files.write(asked, _encoded(loaded))
    return loaded


def _asked(folders: Sequence[Path], settings: Settings) -> bytes | None:
    """All that decides what is loaded. None where files cannot be read or are too large: ``load_catalog``
    reports that.
    """
    digest = hashlib.sha256(msgspec.json.encode(settings, order="sorted"))
    for package in _JUDGES:
        for source in _sources(importlib.resources.files(package)):
            digest.update(source.read_bytes())
    for folder in folders:
        digest.update(f"\0{folder}\0{folder.exists()}".encode())
        files = table_files(folder, lambda _reported_by_load_catalog: None)
        if not all(map(Path.is_file, files)) or any(size.too_many_bytes(files)):
            return None
        try:
            for file in files:
                digest.update(f"\0{file}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
        except OSError:
            return None
    return digest.digest()


def _sources(package: Traversable) -> Iterator[Traversable]:
    for each in sorted(package.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _sources(each)
        elif each.name.endswith(".py"):
            yield each


def _encoded(loaded: Loaded) -> bytes:
    return json.dumps(loaded.warnings).encode() + b"\n" + encode_catalog(loaded.catalog)


def _decoded(kept: bytes) -> Loaded:
    """Raises ValueError."""
    warnings, _, catalog = kept.partition(b"\n")
    return Loaded(decode_catalog(catalog), tuple(json.loads(warnings)))
