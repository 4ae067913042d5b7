"""Writes results: JSON for programs, lines and tables for people; colour and boxes on a terminal only.

What stands in a pipe or a file is plain, one item a line, and never cut.
"""

import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from nodeagent.toml.problem import Problem

Cell = str

_STYLES: Final[dict[str, str]] = {
    "ISOLATE": "red",
    "NO_NEW_JOBS": "yellow",
    "UNKNOWN": "magenta",
    "ALLOW": "green",
    "raised": "red",
    "promoted": "red",
    "cleared": "green",
    "released": "green",
}
"""Words that a glance should find."""


def write_json(value: object) -> None:
    """One object, one line, written out at once."""
    import msgspec

    click.echo(msgspec.json.encode(value))


def problem_form(problem: "Problem") -> dict[str, object]:
    """The JSON form of what is wrong with a file."""
    return {"file": problem.file, "line": problem.line, "key": problem.key, "reason": problem.reason}


def write(text: str = "") -> None:
    """One line of text. Colours are dropped where nobody would see them, or $NO_COLOR asks for it."""
    click.echo(text, color=False if os.environ.get("NO_COLOR") else None)


def note(text: str) -> None:
    """A remark beside the result, on standard error."""
    click.echo(text, err=True)


def write_field(label: str, text: str) -> None:
    """An indented line; on a terminal it is wrapped under its own beginning."""
    lead = f"  {label} "
    if not on_terminal():
        write(lead + text)
        return
    for line in wrapped(text, lead, " " * len(lead)) or [lead]:
        write(line)


def write_continued(head: str, rest: str) -> None:
    """One line; on a terminal that is too narrow for it, the rest follows below, indented."""
    line = " ".join(filter(None, (head, rest)))
    if not on_terminal() or len(line) <= width():
        write(line)
        return
    for piece in (*wrapped(head, "", "    "), *wrapped(rest, "    ", "    ")):
        write(piece)


def write_wrapped(text: str) -> None:
    """One line; on a terminal that is too narrow for it, more of them, the later ones indented."""
    lines = wrapped(text, "", "    ") if on_terminal() else [text]
    for line in lines:
        write(" ".join(map(_coloured_within, line.split(" "))))


def wrapped(text: str, first: str, others: str) -> list[str]:
    """Lines that fit the terminal, after these beginnings. Ids are kept whole: they are copied."""
    return textwrap.wrap(
        text, width(), initial_indent=first, subsequent_indent=others, break_on_hyphens=False
    )


def on_terminal() -> bool:
    return sys.stdout.isatty()


def width() -> int:
    """Columns of the terminal; 80 where it cannot say."""
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


def coloured(word: str) -> str:
    """The word, coloured if it is one that a glance should find."""
    style = _STYLES.get(word)
    return click.style(word, fg=style) if style else word


def _coloured_within(text: str) -> str:
    """A word with what punctuation follows it."""
    bare = text.rstrip(",:;")
    return coloured(bare) + text[len(bare) :]


def write_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Columns of equal width, two spaces between them.

    On a terminal no line is longer than it is wide, and no word is cut: the last column is wrapped, and
    stands below the others where they leave it no room.
    """
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    lead = sum(widths[:-1]) + 2 * len(widths[:-1])
    longest = max(len(word) for row in (columns, *rows) for word in row[-1].split() or [""])
    write_row: Callable[[Sequence[str], Sequence[Cell], int], None]
    if not on_terminal() or lead + widths[-1] <= width():
        write_row = _write_whole
    elif lead + max(longest, _LEAST_ROOM) <= width():
        write_row = _write_wrapped
    else:
        write_row = _write_below
    for place, row in enumerate((columns, *rows)):
        write_row(
            [_styled(cell, size, place == 0) for cell, size in zip(row, widths, strict=True)], row, lead
        )


_LEAST_ROOM: Final = 16
"""The least width of a column that is wrapped: with less it would be one word a line."""


def _styled(cell: Cell, size: int, is_head: bool) -> str:
    return (click.style(cell, bold=True) if is_head else coloured(cell)) + " " * (size - len(cell))


def _write_whole(styled: Sequence[str], _row: Sequence[Cell], _lead: int) -> None:
    write("  ".join(styled).rstrip())


def _write_wrapped(styled: Sequence[str], row: Sequence[Cell], lead: int) -> None:
    first, *others = wrapped(row[-1], " " * lead, " " * lead) or [""]
    write("  ".join((*styled[:-1], first[lead:])).rstrip())
    for line in others:
        write(line)


def _write_below(styled: Sequence[str], row: Sequence[Cell], lead: int) -> None:
    if lead - 2 <= width():
        write("  ".join(styled[:-1]).rstrip())
    else:
        for line in wrapped("  ".join(row[:-1]), "", "  "):
            write(line)
    for line in wrapped(row[-1], "    ", "    "):
        write(line)
