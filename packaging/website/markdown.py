"""Text from other places, as Markdown that shows it as it is."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

_SPECIAL: Final = re.compile(r"([\\*_\[\]<>{}|#$~])")
_CODE: Final = re.compile(r"(`[^`]+`)")


def prose(text: str) -> str:
    """On one line; what is in backticks stays code."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if place % 2 else _SPECIAL.sub(r"\\\1", part) for place, part in enumerate(parts))


def paragraphs(text: str) -> str:
    """Those of a comment, which blank lines part."""
    return "\n\n".join(prose(each) for each in re.split(r"\n\s*\n", text.strip()))


def code(text: str) -> str:
    """Within a line. A text with backticks is put between two."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are Markdown; an upright stroke in one of them does not end it."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)
