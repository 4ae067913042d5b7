"""The tables of docs/architecture.md that name the files of the three paths.

A row has a folder of ``nodeagent/`` (``.`` for the package itself), and the files of it. The table of what
every input runs through belongs to each path.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

DOCUMENT: Final = "docs/architecture.md"

EVERY_INPUT: Final = "What every input runs through"
TITLES: Final[Mapping[str, str]] = {
    "line": "A kernel line",
    "order": "An order",
    "job": "The recovery of a job",
}
"""Path -> the title of its section."""

_ROW: Final = re.compile(r"\| `([^`]+?)/?` \| (.+) \|")
_FILE: Final = re.compile(r"`([^`/ ]+\.py)`")


class NoSection(Exception):
    """The document has no section of that title; the text names it."""


def named_files(root: Path, path: str) -> frozenset[str]:
    """The files of a path, relative to ``nodeagent/``. Raises ``OSError`` and ``NoSection``."""
    text = (root / DOCUMENT).read_text(encoding="utf-8")
    return frozenset(file for title in (EVERY_INPUT, TITLES[path]) for file in files_of(text, title))


def files_of(text: str, title: str) -> Iterator[str]:
    """The files in the tables of one section, in order. Raises ``NoSection``."""
    _, found, rest = text.partition(f"\n### {title}\n")
    if not found:
        raise NoSection(f'{DOCUMENT}: no section "{title}"')
    for folder, files in _ROW.findall(re.split(r"\n##+ ", rest, maxsplit=1)[0]):
        for file in _FILE.findall(files):
            yield file if folder == "." else f"{folder}/{file}"
