"""The documents for people, and the examples in them: README, CONTRIBUTING, CHANGELOG and docs/."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DOCUMENTS: Final[Sequence[Path]] = (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")))

PROGRAM: Final = "nodeagent"
BLOCK: Final = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", flags=re.MULTILINE | re.DOTALL)
INLINE: Final = re.compile(r"`([^`\n]+)`")
PROSE_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")


def name_of(document: Path) -> str:
    """As a test shows it."""
    return str(document.relative_to(ROOT))


def blocks(language: str, document: Path | None = None) -> list[str]:
    """The blocks in this language, of one document or of all of them."""
    texts = [each.read_text() for each in (DOCUMENTS if document is None else [document])]
    return [
        found["text"] for text in texts for found in BLOCK.finditer(text) if found["language"] == language
    ]


def block(language: str, document: Path) -> str:
    (found,) = blocks(language, document)
    return found


def prose(document: Path) -> str:
    """Everything but the blocks."""
    return BLOCK.sub("", document.read_text())


def shell_lines(document: Path) -> Iterator[list[str]]:
    """The words of each line of its sh blocks, without comments and prompts. A backslash joins two lines."""
    for text in blocks("sh", document):
        yield from shell_words(text)


def shell_words(text: str) -> Iterator[list[str]]:
    """Those of a block."""
    for line in text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


def called(words: list[str]) -> list[str]:
    """A shell line without what may stand before its command: variables, sudo, and ./dev before nodeagent."""
    while words and ("=" in words[0] or words[0] == "sudo" or words[:2] == ["./dev", PROGRAM]):
        words = words[1:]
    return words


def orders(document: Path) -> Iterator[list[str]]:
    """What follows ``nodeagent`` in its sh blocks and in its code between words: one list of words each."""
    codes = (shlex.split(code) for code in INLINE.findall(prose(document)) if f"{PROGRAM} " in code)
    for line in (*shell_lines(document), *codes):
        words = called(line)
        if words[:1] == [PROGRAM] and words[1:]:
            yield words[1:]
