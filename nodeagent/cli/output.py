"""Writes results: JSON for programs, lines and tables for people; colour and boxes on a terminal only.

What stands in a pipe or a file is plain, one item a line, and never cut.
"""

import os
import sys
import textwrap
from collections.abc import Sequence
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
    """One line; on a terminal that is too narrow for it, what goes on is told below, indented."""
    line = " ".join(filter(None, (head, rest)))
    if not on_terminal() or len(line) <= width():
        write(line)
        return
    for piece in (*wrapped(head, "", "    "), *wrapped(rest, "    ", "    ")):
        write(piece)


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


def write_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """On a terminal wrapped to its width; elsewhere columns of equal width, two spaces between them."""
    if on_terminal():
        _write_wrapped(columns, rows)
        return
    lines = [columns, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    for line in lines:
        write("  ".join(cell.ljust(size) for cell, size in zip(line, widths, strict=True)).rstrip())


def _write_wrapped(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console(width=width()).print(table)
