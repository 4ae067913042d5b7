"""Copies the documents, and the files that they link to, to where Sphinx reads them. It changes nothing."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_LINK: Final = re.compile(r"\]\((?!https?:|#)([^)\s#]+)[^)\s]*\)")
_BLOCK: Final = re.compile(r"^```.*?^```$", flags=re.MULTILINE | re.DOTALL)


def every_document() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]


def copy(target: Path) -> None:
    """Each lies below the target as it lies in the repository, so that its links lead to the same."""
    for document in every_document():
        for path in (document, *_linked(document)):
            place = target / path.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def _linked(document: Path) -> Iterator[Path]:
    """Each file that it links to, and that is no document."""
    for link in _LINK.findall(_BLOCK.sub("", document.read_text(encoding="utf-8"))):
        path = (document.parent / link).resolve()
        if path.is_file() and path.suffix != ".md":
            yield path
