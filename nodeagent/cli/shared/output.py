"""Writes results: JSON for programs, lines and tables for people; colour and boxes on a terminal only.

In a pipe or a file the output is plain, one item a line, and never cut. All that a command writes goes
through ``_put`` or ``json_line``, which make it printable. Only colours that are given here reach a terminal.
"""

import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Final

import click

from nodeagent.cli.shared.printable import printable, printable_json

if TYPE_CHECKING:
    from nodeagent.toml.problem import Problem


Cell = str

_STYLES: Final[dict[str, str]] = {
    "ISOLATE": "red",
    "NO_NEW_JOBS": "yellow",
    "UNKNOWN": "magenta",
    "ALLOW": "green",
    "GIVE_UP": "red",
    "RESCHEDULE_ISOLATED": "red",
    "RESCHEDULE": "yellow",
    "HOLD": "yellow",
    "RESTART_IN_PLACE": "yellow",
    "raised": "red",
    "promoted": "red",
    "cleared": "green",
    "released": "green",
}
"""The colours of verdicts, of what is recommended for jobs and of kinds of events."""

_LEAST_ROOM: Final = 16
"""The least width of a column that is wrapped: with less it would be one word a line."""

_COLUMNS: Final = 80
_LINES: Final = 24
"""Of a terminal whose size is unknown."""

_WITHOUT_PAGER: Final = ("", "dumb")
"""Values of $TERM with which a pager can do nothing but ask."""


@dataclass(frozen=True, slots=True)
class Styled:
    """A text with its style. It is filled up with blanks to ``width``; ``after`` follows without colour."""

    text: str
    colour: str | None = None
    bold: bool = False
    width: int = 0
    after: str = ""


Piece = str | Styled


def _put(*pieces: Piece, err: bool = False, file: IO[Any] | None = None) -> None:
    """One line, the pieces with a blank between them. Without a terminal, or with $NO_COLOR, there are no
    colours.
    """
    captures = _capture.get() if file is None and not err else None
    show = _plain if captures and captures.is_plain else _shown
    line = " ".join(map(show, pieces)).rstrip(" ")
    if captures:
        captures.lines.append(line)
        return
    _echo(line, file=file, err=err)


class OutputFailed(click.ClickException):
    """The result cannot be written: a full disk behind it, a terminal that is gone."""

    def show(self, file: IO[Any] | None = None) -> None:
        note(f"nodeagent: {self.message}", file)


def _echo(content: str | bytes, *, file: IO[Any] | None = None, err: bool = False, end: bool = True) -> None:
    """Raises ``OutputFailed``; ``BrokenPipeError`` where the reader went away: that ends quietly."""
    try:
        click.echo(content, file=file, err=err, nl=end, color=_colour())
    except BrokenPipeError:
        raise
    except OSError as error:
        if file is None and not err:
            # What is still in the buffer would fail once more at the end of the process.
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, sys.stdout.fileno())
        raise OutputFailed(f"the output cannot be written: {error.strerror}") from error


def _colour() -> bool | None:
    return False if os.environ.get("NO_COLOR") else None


@dataclass(frozen=True, slots=True)
class _Capture:
    """Lines that are shown later, or elsewhere. ``is_plain``: as in a pipe, without colours."""

    lines: list[str]
    is_plain: bool


_capture: Final = ContextVar[_Capture | None]("capture", default=None)


@contextmanager
def captured(*, is_plain: bool = False) -> Iterator[list[str]]:
    """The lines that are written meanwhile, instead of the output: printable, as for the terminal that
    there is, or as in a pipe.
    """
    capture = _Capture([], is_plain)
    token = _capture.set(capture)
    try:
        yield capture.lines
    finally:
        _capture.reset(token)


@contextmanager
def on_one_screen() -> Iterator[None]:
    """On a terminal, what is written goes through the user's pager if it has more lines than the terminal."""
    if not on_terminal():
        yield
        return
    lines: list[str] = []
    try:
        with captured() as lines:
            yield
    finally:
        _show(lines)


def _show(lines: Sequence[str]) -> None:
    import shutil

    text = "\n".join(lines)
    fits = len(lines) < shutil.get_terminal_size((_COLUMNS, _LINES)).lines
    if fits or not sys.stdin.isatty() or os.environ.get("TERM", "") in _WITHOUT_PAGER:
        _echo(text)
    else:
        click.echo_via_pager(text + "\n", color=_colour())


def _plain(piece: Piece) -> str:
    return _shown(piece if isinstance(piece, str) else replace(piece, colour=None, bold=False))


def _shown(piece: Piece) -> str:
    if isinstance(piece, str):
        return printable(piece)
    text, after = printable(piece.text), printable(piece.after)
    is_plain = piece.colour is None and not piece.bold
    styled = text if is_plain else click.style(text, fg=piece.colour, bold=piece.bold or None)
    return styled + after + " " * (piece.width - len(text) - len(after))


def json_line(value: object) -> bytes:
    """One object in one line, with its end."""
    import msgspec

    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, as of the name of a file that is not UTF-8
        import json

        text = json.dumps(msgspec.to_builtins(value), separators=(",", ":"))
    return printable_json(text).encode() + b"\n"


def write_json(value: object) -> None:
    """One object, one line, written out at once."""
    _echo(json_line(value), end=False)


def problem_form(problem: "Problem") -> dict[str, object]:
    """The JSON form of what is wrong with a file."""
    return {"file": problem.file, "line": problem.line, "key": problem.key, "reason": problem.reason}


def write(*pieces: Piece) -> None:
    """One line; on a terminal that is too narrow for it, more of them, the later ones indented."""
    plain = click.unstyle(" ".join(map(_shown, pieces))).rstrip(" ")
    if not on_terminal() or len(plain) <= width():
        _put(*pieces)
        return
    for line in wrapped(plain, "", "    "):
        _put(*map(coloured, line.split(" ")))


def write_lines(text: str) -> None:
    """A text of our own that has several lines."""
    for line in text.splitlines():
        _put(line)


def note(text: str, file: IO[Any] | None = None) -> None:
    """A remark in addition to the result, on standard error: one line; on a terminal no word of it is cut."""
    lines = [text]
    if file is None and sys.stderr.isatty():
        lines = _filled(text, os.get_terminal_size(sys.stderr.fileno()).columns or _COLUMNS)
    for line in lines:
        _put(line, err=file is None, file=file)


def draw(lines: Sequence[str]) -> None:
    """Captured lines in place of what the terminal shows: the first ones, where it is too low for all."""
    import shutil

    click.clear()
    shown = list(lines)
    room = max(2, shutil.get_terminal_size((_COLUMNS, _LINES)).lines) - 1
    if on_terminal() and len(shown) > room:
        left_out = len(shown) - room + 1
        shown[room - 1 :] = [shortened(f"{left_out} more lines: enlarge the terminal", width())]
    _echo("\n".join(shown))


def write_field(label: str, text: str) -> None:
    """An indented line; on a terminal it is wrapped under its own beginning."""
    lead = f"  {label} "
    if not on_terminal():
        write(lead + text)
        return
    for line in wrapped(text, lead, " " * len(lead)) or [lead]:
        write(line)


def write_prose(label: str, text: str) -> None:
    """A field of running text, whose line breaks are blanks."""
    write_field(label, " ".join(text.split()))


def write_continued(head: str, rest: str) -> None:
    """One line; on a terminal that is too narrow for it, the rest follows below, indented."""
    line = printable(" ".join(filter(None, (head, rest))))
    if not on_terminal() or len(line) <= width():
        write(line)
        return
    for piece in (*wrapped(head, "", "    "), *wrapped(rest, "    ", "    ")):
        write(piece)


def write_wrapped(text: str) -> None:
    """As ``write``, with verdicts in their colours."""
    write(*map(coloured, text.split(" ")))


def wrapped(text: str, first: str, others: str) -> list[str]:
    """Lines that fit the terminal, after these beginnings. Ids are kept whole: they are copied."""
    return _filled(text, width(), first, others)


def _filled(text: str, columns: int, first: str = "", others: str = "    ") -> list[str]:
    return textwrap.wrap(
        printable(text), columns, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
    )


def shortened(text: str, size: int) -> str:
    """The text, with an ellipsis at its end where it is longer than that."""
    return text if len(text) <= size else text[: max(0, size - 1)].rstrip() + "…"


def confirmed(question: str) -> bool:
    """Whether a person at the terminal agrees; no answer is a no."""
    return click.confirm(printable(question), default=False)


def on_terminal() -> bool:
    capture = _capture.get()
    return not (capture and capture.is_plain) and sys.stdout.isatty()


def width() -> int:
    """Columns of the terminal; 80 where they are unknown."""
    import shutil

    return shutil.get_terminal_size((_COLUMNS, _LINES)).columns


def coloured(text: str, size: int = 0) -> Piece:
    """A verdict or kind of event in its colour, any other text as it is; filled up with blanks to this size.

    Punctuation at its end is not coloured.
    """
    bare = text.rstrip(",:;")
    return Styled(bare, colour=_STYLES.get(bare), width=size, after=text[len(bare) :])


def write_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, is_whole: bool = False) -> None:
    """Columns of equal width, two spaces between them.

    On a terminal no line is longer than the terminal is wide, and no word is cut: the last column is wrapped,
    and goes below the others where they leave no room for it. ``is_whole``: each row is a line nevertheless.
    """
    columns, rows = list(map(printable, columns)), [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    lead = sum(widths[:-1]) + 2 * len(widths[:-1])
    longest = max(len(word) for row in (columns, *rows) for word in row[-1].split() or [""])
    write_row: Callable[[Sequence[Piece], Sequence[Cell], int], None]
    if is_whole or not on_terminal() or lead + widths[-1] <= width():
        write_row = _write_whole
    elif lead + max(longest, _LEAST_ROOM) <= width():
        write_row = _write_wrapped
    else:
        write_row = _write_below
    for place, row in enumerate((columns, *rows)):
        # One blank more than the column's own, and that between two pieces.
        sizes = [size + 1 for size in widths[:-1]]
        styled = [_styled(cell, size, place == 0) for cell, size in zip(row, [*sizes, 0], strict=True)]
        write_row(styled, row, lead)


def _styled(cell: Cell, size: int, is_head: bool) -> Piece:
    return Styled(cell, bold=True, width=size) if is_head else coloured(cell, size)


def _write_whole(styled: Sequence[Piece], _row: Sequence[Cell], _lead: int) -> None:
    _put(*styled)


def _write_wrapped(styled: Sequence[Piece], row: Sequence[Cell], lead: int) -> None:
    first, *others = wrapped(row[-1], " " * lead, " " * lead) or [""]
    write(*styled[:-1], first[lead:])
    for line in others:
        write(line)


def _write_below(styled: Sequence[Piece], row: Sequence[Cell], lead: int) -> None:
    if lead - 2 <= width():
        write(*styled[:-1])
    else:
        for line in wrapped("  ".join(row[:-1]), "", "  "):
            write(line)
    for line in wrapped(row[-1], "    ", "    "):
        write(line)
