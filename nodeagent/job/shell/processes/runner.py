"""One run after the other of the command: started, asked to end, killed, and seen to be empty.

What it finds (the command began, has ended, nothing is left) goes to whoever asks for it next. It decides
neither when a run begins nor how it ends.
"""

import os
import select
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from nodeagent.job.inputs import Emptied, Exited, Failure, Given, NotRun, Process, Ran
from nodeagent.job.model import SECOND_NS
from nodeagent.job.session.verdict import own_status
from nodeagent.job.shell.evidence.failures import ERROR_FILE_VARIABLE, Traces, failure_of
from nodeagent.job.shell.processes import command
from nodeagent.job.shell.processes.procfs import Stat
from nodeagent.job.shell.processes.received_signals import Signals
from nodeagent.job.shell.processes.tree import Tree, reap, send_to_child

FIRST_PAUSE_NS: Final = SECOND_NS // 200
LONGEST_PAUSE_NS: Final = SECOND_NS // 5
"""The longest pause between two walks over what is left: of thousands of processes each takes tens of
milliseconds.
"""

_MOST_WALKS: Final = 50
"""So many walks are made in one turn of the loop."""

_LOOKS_AGAIN_S: Final = 1.0

_STDIN: Final = 0
_OF_TERMINALS: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH)
"""termios(3), tty_ioctl(4)."""

_OF_SESSIONS: Final = (*_OF_TERMINALS, signal.SIGHUP, signal.SIGCONT)
"""These a terminal sends to a whole group: credentials(7)."""


class Runner:
    def __init__(self, arguments: Sequence[str], tree: Tree, *, foreground: bool) -> None:
        self.tree = tree
        self.process: Process | None = None
        """The command of the run, also once it has ended; None before the first."""

        self._arguments = arguments
        self._foreground = foreground
        self._run = 0
        self._traces = Traces.before(None)
        self._failure: Failure | None = None
        self._lives = False
        self._is_empty = True
        self._kills = False
        self._due_ns: int | None = None
        self._pause_ns = FIRST_PAUSE_NS
        self._found: list[Given] = []

    @property
    def command_lives(self) -> bool:
        return self._lives

    @property
    def is_running(self) -> bool:
        """Something of the run may be left."""
        return not self._is_empty

    def adopt(self, survivors: Sequence[Process], now_ns: int) -> None:
        """They outlived an earlier supervisor. Nobody tells when they end: that is looked for."""
        if survivors:
            self.tree.adopt(survivors)
            self._is_empty = False
            self._due_ns = now_ns + LONGEST_PAUSE_NS

    def start(self, run: int, environment: Mapping[str, str], folder: Path | None) -> None:
        """``folder`` is the run's own; None where there is none."""
        own = {"PYTHONFAULTHANDLER": "1"}
        if folder is not None:
            own[ERROR_FILE_VARIABLE] = str(folder / "error.json")
        added = {**environment, **{name: value for name, value in own.items() if name not in os.environ}}
        error_file = added.get(ERROR_FILE_VARIABLE) or os.environ.get(ERROR_FILE_VARIABLE)
        self._traces = Traces.before(Path(error_file) if error_file else None)
        self._run = run
        try:
            self.process = command.start(self._arguments, added, foreground=self._foreground)
        except (OSError, ValueError) as error:
            number = error.errno if isinstance(error, OSError) else None
            self._found.append(
                NotRun(run=run, error=number or 0, why=f"{self._arguments[0]}: {_words(error)}")
            )
            return
        self._lives = True
        self._is_empty = False
        self._kills = False
        self._due_ns = None
        self._found.append(Ran(run=run, process=self.process))

    def terminate(self, run: int, number: int) -> None:
        """One that is stopped takes the signal once it goes on."""
        self._run = run
        for each in (number, signal.SIGCONT):
            if self.process is not None and not self._is_empty:
                self.tree.signal_group(self.process, each, is_child=self._lives)
            self.tree.signal_adopted(each)

    def pass_on(self, number: int) -> None:
        """Send the command the signal that was sent to the supervisor. What a terminal sends goes to all of
        its foreground: the command there has it already, one in a session of its own gets it with its group.
        """
        if self._foreground and number in _OF_TERMINALS and os.isatty(_STDIN):
            return
        if self.process is None or not self._lives:
            return
        if number in _OF_SESSIONS and _has_terminal():
            self.tree.signal_group(self.process, number, is_child=True)
        else:
            send_to_child(self.process.pid, number)

    def kill(self, run: int, now_ns: int) -> None:
        """From now on, until nothing is left."""
        self._run = run
        self._kills = True
        self._pause_ns = FIRST_PAUSE_NS
        self._due_ns = now_ns

    def wait_alone(self, signals: Signals) -> int:
        """Until the command ends; its status. Every signal goes to it, as if there were no supervisor."""
        while self._lives:
            self.reap()
            select.select([signals], [], [], _LOOKS_AGAIN_S)
            for number in signals.take():
                if number != signal.SIGCHLD:
                    self.pass_on(number)
        return own_status(self._failure)

    def next_deadline_ns(self) -> int | None:
        return self._due_ns

    def tick(self, now_ns: int) -> None:
        if self._due_ns is None or now_ns < self._due_ns or self._is_empty:
            return
        left = self._killed() if self._kills else self.tree.members()
        self._due_ns = now_ns + self._pause_ns
        self._pause_ns = min(2 * self._pause_ns, LONGEST_PAUSE_NS)
        if not left and not self._lives:
            self._emptied()

    def _killed(self) -> list[Stat]:
        """Who is left. As long as a walk finds anybody new, the next follows at once: those who keep forking
        are given no time to.
        """
        if self._lives and self.process is not None:  # also where /proc does not show it
            send_to_child(self.process.pid, signal.SIGKILL)
        left: list[Stat] = []
        seen: set[Process] = set()
        for _ in range(_MOST_WALKS):
            left = self.tree.kill()
            found = {each.process for each in left}
            if found <= seen:
                break
            seen |= found
        return left

    def reap(self) -> list[int]:
        """Takes note of all that have ended; the pids of those that were not the command."""
        others = []
        for pid, status in reap():
            if self._lives and self.process is not None and pid == self.process.pid:
                self._lives = False
                self._failure = failure_of(status, self._traces)
                self._found.append(Exited(run=self._run, failure=self._failure))
            else:
                others.append(pid)
        return others

    def look(self) -> None:
        """Whether a run whose command has ended has others left; when something of it has ended."""
        if not self._lives and not self._is_empty and not self.tree.members():
            self._emptied()

    def take(self) -> list[Given]:
        """What was found since the last call."""
        found, self._found = self._found, []
        return found

    def _emptied(self) -> None:
        self._is_empty = True
        self._due_ns = None
        self._found.append(Emptied(run=self._run))


def _has_terminal() -> bool:
    """Whether the supervisor's session has one: tty(4)."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _words(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
