"""The lines in ``lines.toml`` as languages, and filled with names of one's choice."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.forging.automata import Automaton, Language, chars_of, pieces

LINES: Final = Path(__file__).with_name("lines.toml")

_CHOSEN: Final[dict[str, tuple[str, int, int | None]]] = {
    "program": (r"[^\0]", 0, 15),
    "interface": (r"[^\s:/\0]", 1, 15),
    "file": (r"[^/\0]", 1, None),
    "group": (r"[^/\n\0]", 1, None),
    "path": (r"[^\0]", 0, None),
    "text": (r"[^\0]", 0, None),
}
"""Which characters, and from how few to how many; 255 and 4095 are as good as any number here."""
_OF_THE_KERNEL: Final[dict[str, tuple[str, int, int | None]]] = {
    "n": (r"[0-9]", 1, None),
    "x": (r"[0-9a-f]", 1, None),
    "word": (r"[A-Za-z0-9_]", 1, None),
}
_SAMPLES: Final = {"n": "42", "x": "7f00", "word": "vsnprintf", "pci": "0000:3b:00.0"}
_PCI: Final = "ffff:ff:ff.f"
"""Any hexadecimal digit in place of each f."""
_LIMITS: Final = {"program": 15, "interface": 15, "file": 255, "group": 255, "path": 4000, "text": 900}


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One line of the kernel; ``about``: the ids of the patterns that may take it."""

    text: str
    source: str
    about: frozenset[str]
    long: bool
    continued: bool

    @property
    def only_short(self) -> bool:
        """Whether all that users choose in it is names of programs and interfaces."""
        chosen = {word for _, word in pieces(self.text)} & _CHOSEN.keys()
        return chosen <= {"program", "interface"}

    def language(self) -> Language:
        """Every line that it can be."""
        automaton = Automaton()
        begin = here = automaton.state()
        for literal, word in pieces(self.text):
            for char in literal:
                here = automaton.repeat(1 << ord(char), 1, 1, here)
            if word == "pci":
                digit = chars_of("[0-9a-f]")
                for char in _PCI:
                    here = automaton.repeat(digit if char == "f" else 1 << ord(char), 1, 1, here)
            elif word:
                chars, least, most = (_CHOSEN | _OF_THE_KERNEL)[word]
                here = automaton.repeat(chars_of(chars), least, most, here)
        return Language(automaton, begin, here)

    def filled(self, first: str, later: str) -> str:
        """With a name for the first that is chosen, and one for all behind it, cut as the kernel does."""
        text, name = "", first
        for literal, word in pieces(self.text):
            text += literal
            if word in _CHOSEN:
                text += _fit(word, name)
                name = later
            elif word:
                text += _SAMPLES[word]
        return text


def templates() -> list[Template]:
    return [
        Template(
            text=line["text"],
            source=line["source"],
            about=frozenset(line.get("about", ())),
            long=line.get("long", False),
            continued=line.get("continued", False),
        )
        for line in tomllib.loads(LINES.read_text())["line"]
    ]


@cache
def _fit(word: str, name: str) -> str:
    """What of the name the kernel takes: an interface's may hold no blank."""
    allowed = re.compile(_CHOSEN[word][0])
    kept = "".join(char if allowed.match(char) else "_" for char in name)
    return kept[: _LIMITS[word]] or "x" * _CHOSEN[word][1]
