"""``nodeagent top``: draws what the feed knows as the choices ask, until a key or a signal ends it."""

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from nodeagent.cli.shared.errors import EXIT_USAGE, CommandFailure
from nodeagent.cli.shared.options import public_socket, socket_option
from nodeagent.cli.shared.texts import present
from nodeagent.cli.top.choices import Choices, Pane, help_lines, pressed
from nodeagent.cli.top.feed import NodeFeed
from nodeagent.cli.top.keys import keys
from nodeagent.cli.top.screen import ordered, screen, shown_of

if TYPE_CHECKING:
    from nodeagent.cli.top.terminal import Terminal

_DRAWN_EACH_S: Final = 1.0
"""Ages grow."""

_SIGNALLED: Final = 128
_UNABLE: Final = ("", "dumb", "unknown")
"""Terminals whose cursor cannot be moved."""

_NO_TERMINAL: Final = (
    "top needs a terminal for its input and output, and $TERM to name it;"
    ' "nodeagent devices" and "nodeagent status" print once, "nodeagent status --watch" again and again,'
    ' "nodeagent events --follow" what happens'
)


@click.command("top")
@socket_option
def command(socket: Path | None, config_path: Path | None) -> None:
    """Watch the devices and their faults live. The key ? shows the keys.

    What happens is shown at once; what is measured, every two seconds. It needs a terminal. Where the daemon
    does not answer any more, the last state stays on the screen with its time, until the daemon is back.
    """
    is_able = os.environ.get("TERM", "") not in _UNABLE
    if not (is_able and sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandFailure(_NO_TERMINAL, EXIT_USAGE)
    raise SystemExit(_run(public_socket(socket, config_path)))


def _run(path: Path) -> int:
    """The exit status: 0 after the key q, else as a shell has it of a signal."""
    from nodeagent.cli.top.terminal import Terminal, TerminalGone  # rich is slow to import

    terminal = Terminal()
    feed = NodeFeed(path, terminal.wake)
    feed.start()
    try:
        with terminal:
            choices = Choices()
            while terminal.ended_by is None and not choices.has_quit:
                _draw(terminal, feed, choices)
                for key in keys(terminal.read(_DRAWN_EACH_S)):
                    choices = _after(key, choices, terminal, feed)
    except TerminalGone:
        return _SIGNALLED + signal.SIGHUP
    finally:
        feed.stop()
    return 0 if terminal.ended_by is None else _SIGNALLED + terminal.ended_by


def _draw(terminal: "Terminal", feed: NodeFeed, choices: Choices) -> None:
    seen = feed.seen
    if seen is not None:
        terminal.draw(screen(seen, choices, _text(feed, choices), terminal.size, present()))


def _after(key: str, choices: Choices, terminal: "Terminal", feed: NodeFeed) -> Choices:
    """The choices after a key; the feed learns what is to be shown."""
    seen = feed.seen
    names = [] if seen is None else ordered(seen, choices)
    after = pressed(choices, key, shown_of(names, _text(feed, choices), terminal.size))
    feed.show(after.pane, after.selected if after.pane is Pane.WHY else "")
    return after


def _text(feed: NodeFeed, choices: Choices) -> list[str]:
    """The lines of the pane; of one that was just asked for there are none yet."""
    if choices.pane is Pane.HELP:
        return help_lines()
    of, text = feed.text
    wanted = (choices.pane, choices.selected if choices.pane is Pane.WHY else "")
    return text() if of == wanted else []
