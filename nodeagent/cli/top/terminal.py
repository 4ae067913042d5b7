"""The terminal while ``top`` has it: keys one by one, a screen of its own, signals as values.

However it ends, the terminal is as it was before. Ctrl-Z gives it back until the process goes on. It knows no
meaning of keys, and no devices.
"""

import os
import select
import signal
import socket
import sys
import termios
import tty
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Final, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from nodeagent.cli.shared.output import Styled
from nodeagent.cli.shared.printable import printable
from nodeagent.cli.top.keys import is_begun
from nodeagent.cli.top.screen import Line, Size, WrittenLine

_ENDS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ESCAPE_S: Final = 0.05
"""The rest of a key's sequence comes within this."""

_MOST_READ: Final = 1024


class TerminalGone(Exception):
    """It was closed."""


class Terminal:
    """A context. ``ended_by`` is the signal that asks the process to end, None for none."""

    def __init__(self) -> None:
        for name in ("COLUMNS", "LINES"):  # as a shell has exported them they do not follow the terminal
            os.environ.pop(name, None)
        self._console = Console()
        self._live = Live(
            console=self._console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._input = sys.stdin.fileno()
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        self._signals: deque[int] = deque()
        self._before: list[Any] = []
        self._handlers: dict[int, Any] = {}
        self.ended_by: int | None = None

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._input)
        for number in (*_ENDS, signal.SIGTSTP, signal.SIGWINCH):
            self._handlers[number] = signal.signal(number, self._note)
        self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._wake.close()
        self._woken.close()

    @property
    def size(self) -> Size:
        width, height = self._console.size
        return Size(width, height)

    def wake(self) -> None:
        """Let ``read`` return, from any thread."""
        with suppress(OSError):  # it is awake already, or has ended
            self._wake.send(b"x")

    def draw(self, lines: Sequence[Line]) -> None:
        shown = Text("\n", no_wrap=True, overflow="crop", end="").join(map(_text, lines))
        self._live.update(shown, refresh=True)

    def read(self, limit_s: float) -> bytes:
        """What keys sent; b"" after the time, a signal or ``wake``. Raises ``TerminalGone``."""
        ready, _, _ = select.select([self._input, self._woken], [], [], limit_s)
        if self._woken in ready:
            self._woken.recv(_MOST_READ)
        while self._signals:
            self._obey(self._signals.popleft())
        return self._keys() if self._input in ready else b""

    def _keys(self) -> bytes:
        sent = self._sent()
        while is_begun(sent) and select.select([self._input], [], [], _ESCAPE_S)[0]:
            sent += self._sent()
        return sent

    def _sent(self) -> bytes:
        try:
            sent = os.read(self._input, _MOST_READ)
        except OSError as error:  # EIO: its other end is closed
            raise TerminalGone from error
        if not sent:
            raise TerminalGone
        return sent

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)
        self.wake()

    def _obey(self, number: int) -> None:
        if number in _ENDS:
            self.ended_by = number
        elif number == signal.SIGTSTP:
            self._give_back()
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTSTP)  # returns once the process goes on
            signal.signal(signal.SIGTSTP, self._note)
            self._take()

    def _take(self) -> None:
        tty.setcbreak(self._input)
        self._live.start()

    def _give_back(self) -> None:
        self._live.stop()
        termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)


def _text(line: Line) -> Text:
    return Text(" ").join(map(_piece, line))


def _piece(piece: str | Styled | WrittenLine) -> Text:
    if isinstance(piece, WrittenLine):
        return Text.from_ansi(piece.text)
    if isinstance(piece, str):
        return Text(printable(piece))
    text, after = printable(piece.text), printable(piece.after)
    style = " ".join(filter(None, ("bold" if piece.bold else "", piece.colour or "")))
    return Text.assemble((text, style), after + " " * (piece.width - len(text) - len(after)))
