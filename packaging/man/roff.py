"""Writes manual pages in the macros of man(7), which man-db and mandoc read. It chooses no words.

Texts within a line are made by ``plain``, ``bold`` and ``italic``, which escape them; all else takes these.
"""

import textwrap
from dataclasses import dataclass, field
from typing import Final

WIDTH: Final = 78
DOCUMENTS: Final = "/usr/share/doc/nodeagent"

# What would be shown as another character, or is a request (groff_char(7), "Troff's own characters").
_IN_PROSE: Final = str.maketrans({"\\": r"\(rs", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"})
_AS_TYPED: Final = str.maketrans(
    {"\\": r"\(rs", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", "'": r"\(aq", "-": r"\-"}
)


def plain(text: str) -> str:
    """Prose: its line breaks are blanks."""
    return " ".join(text.translate(_IN_PROSE).split())


def prose(text: str) -> str:
    """Prose in which what is typed stands in backticks."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:
        return plain(text)
    return "".join(bold(part) if place % 2 else part.translate(_IN_PROSE) for place, part in enumerate(parts))


def bold(text: str) -> str:
    """What is typed as it stands."""
    return rf"\fB{text.translate(_AS_TYPED)}\fR" if text else ""


def italic(text: str) -> str:
    return rf"\fI{text.translate(_IN_PROSE)}\fR" if text else ""


@dataclass
class Page:
    """One page. ``date`` is YYYY-MM-DD, ``source`` the program with its version."""

    name: str
    section: int
    summary: str
    date: str
    source: str
    _lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        title = (self.name.upper(), str(self.section), self.date, self.source, "nodeagent")
        self._lines.append(".TH " + " ".join(map(_quoted, title)))
        self.heading("NAME")
        self._lines.append(rf"{_as_name(self.name)} \- {plain(self.summary)}")

    def heading(self, text: str) -> None:
        self._lines.append(f".SH {_quoted(text)}")

    def subheading(self, text: str) -> None:
        self._lines.append(f".SS {_quoted(text)}")

    def paragraph(self, text: str) -> None:
        """The first behind a heading needs no mark, and would be told of as one too many."""
        if not self._lines[-1].startswith((".SH", ".SS", ".RS")):
            self._lines.append(".PP")
        self._lines += _wrapped(text)

    def tagged(self, tag: str, text: str) -> None:
        """A definition."""
        self._lines += [".TP", tag, *(_wrapped(text) or [r"\&"])]

    def item(self, mark: str, text: str) -> None:
        """Of a list: a bullet, where ``mark`` is "", or a number."""
        self._lines += [rf".IP {mark or chr(92) + '(bu'} 3", *_wrapped(text)]

    def begin_within(self) -> None:
        """What follows belongs to the definition or the item before it."""
        self._lines.append(".RS")

    def end_within(self) -> None:
        self._lines.append(".RE")

    def example(self, text: str) -> None:
        """Lines as they are."""
        if not self._lines[-1].startswith((".SH", ".SS", ".RS")):
            self._lines.append(".PP")
        lines = [_no_request(line.translate(_AS_TYPED).rstrip()) for line in text.rstrip().split("\n")]
        self._lines += [".EX", *(line or r"\&" for line in lines), ".EE"]

    def see_also(self, *pages: tuple[str, int]) -> None:
        self.heading("SEE ALSO")
        named = ", ".join(rf"\fB{_as_name(name)}\fR({section})" for name, section in pages)
        self._lines += _wrapped(f"{named}; the documents in {bold(DOCUMENTS)}")

    @property
    def file_name(self) -> str:
        return f"{self.name}.{self.section}"

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def _as_name(name: str) -> str:
    return name.replace("-", r"\-")


def _quoted(argument: str) -> str:
    return '"' + argument.translate(_IN_PROSE).replace('"', r"\(dq") + '"'


def _wrapped(text: str) -> list[str]:
    lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [_no_request(line) for line in lines]


def _no_request(line: str) -> str:
    """A line that begins with a point or a quote would be taken for a request."""
    return rf"\&{line}" if line.startswith((".", "'")) else line
