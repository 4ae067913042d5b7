"""Small files of the kernel: read whole, a number or a line. What is in them is for others to know."""

from pathlib import Path
from typing import Final

MAX_BYTES: Final = 16 * 1024
"""The kernel gives at most a page."""


class NotANumber(OSError):
    """The kernel wrote something else; str() names the file and shows it."""


def text_of(file: Path) -> str:
    """Raises ``OSError``."""
    with file.open("rb") as opened:
        return opened.read(MAX_BYTES).decode("utf-8", "replace").strip()


def optional(file: Path) -> str:
    """As ``text_of``; "" where there is no such file, or what it belongs to has just gone."""
    try:
        return text_of(file)
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
        return ""


def number_of(file: Path) -> int:
    """Not below 0. Raises ``OSError``."""
    text = text_of(file)
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise NotANumber(f"{file}: {text[:80]!r} where a whole number is needed")
    return int(text)
