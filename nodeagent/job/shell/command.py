"""One run of the command after the other: started, asked to end, killed, seen to be empty; and how it ended.

What it finds (the command began, it has ended, no process is left) is kept until ``take`` is called. It
decides neither when a run begins nor how it ends, and judges no failure.

The command has the supervisor's standard streams, or files in their place, and every descriptor that the
supervisor was given (a launcher's, of MPI or make); the supervisor's own are closed at its exec. The error
file is that of torch elastic: torch/distributed/elastic/multiprocessing/errors/error_handler.py writes
``{"message": {"message": "ValueError: no such layer", "extraInfo": {...}}}``, or a text in place of the inner
object.
"""

import errno
import json
import os
import resource
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nodeagent.job.model import SECOND_NS
from nodeagent.job.session.decision import own_status
from nodeagent.job.session.values import (
    CommandExited,
    Emptied,
    NotRun,
    ProcessId,
    Ran,
    RunFailure,
    SessionInput,
)
from nodeagent.job.shell import files, procfs
from nodeagent.job.shell.error_folder import ErrorFolder
from nodeagent.job.shell.loop import ReceivedSignals
from nodeagent.job.shell.procfs import Stat
from nodeagent.job.shell.run_output import STDERR, STDIN, STDOUT, RunOutput
from nodeagent.job.shell.standard_error import WrittenErrors
from nodeagent.job.shell.tree import Tree, reap, send_to_child

if TYPE_CHECKING:
    from nodeagent.job.shell.output_copy import OutputCopy
    from nodeagent.job.shell.output_files import OutputFiles


def forbid_cores() -> None:
    """Cores of ranks that are ended one by one would fill the disk. The command may raise the limit again."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def start_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    foreground: bool,
    streams: Mapping[int, int] | None = None,
) -> ProcessId:
    """Raises ``OSError`` where it cannot be run. With ``foreground`` it stays in the terminal's session.
    ``streams``: descriptors that it has in place of its standard ones, by those.
    """
    streams = streams or {}
    try:
        return _spawn(command, environment, foreground, streams)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    # A script without an interpreter's line: as execvp(3) and every shell do.
    return _spawn(("/bin/sh", *command), environment, foreground, streams)


def _spawn(
    command: Sequence[str], environment: Mapping[str, str], foreground: bool, streams: Mapping[int, int]
) -> ProcessId:
    begun = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        close_fds=False,
        start_new_session=not foreground,
        stdout=streams.get(STDOUT),
        stderr=streams.get(STDERR),
    )
    begun.returncode = 0  # it is reaped with all others of its tree, not by this object
    found = procfs.stat(begun.pid)
    # Another user's by now (a setuid program) may not be shown, and without /proc none is.
    return ProcessId(pid=begun.pid, start_time=0) if found is None else found.process


ERROR_FILE_VARIABLE: Final = "TORCHELASTIC_ERROR_FILE"

_MAX_TAIL_BYTES: Final = 64 * 1024
_MAX_ERROR_FILE_BYTES: Final = 1 << 20
_MAX_MESSAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class Traces:
    """Where a run leaves what can be read about its end: noted before its command begins."""

    error_file: Path | None
    error_file_ns: int | None
    written: WrittenErrors
    stderr_size: int | None

    @staticmethod
    def before(error_file: Path | None, written: WrittenErrors) -> "Traces":
        """What an earlier run has left in these files is not this one's."""
        return Traces(error_file, _written_ns(error_file), written, written.size())


def failure_of(status: int, traces: Traces, noted: str = "") -> RunFailure:
    """``status`` is that of ``waitpid``. A trace that cannot be read is none. ``noted``: what the error hook
    has of the run.
    """
    error_type, message = _error(traces)
    return RunFailure(
        status=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        error_type=error_type,
        message=message,
        tail="\n".join(each for each in (_tail(traces), noted) if each)[-_MAX_TAIL_BYTES:],
    )


def _written_ns(path: Path | None) -> int | None:
    if path is None:
        return None
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _error(traces: Traces) -> tuple[str, str]:
    """(type, message)."""
    path = traces.error_file
    if path is None or _written_ns(path) == traces.error_file_ns:
        return "", ""
    try:
        text = files.read(path, _MAX_ERROR_FILE_BYTES, is_own=False)
        content: Any = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return "", ""
    while isinstance(content, dict):
        content = content.get("message")
    if not isinstance(content, str):
        return "", ""
    error_type, colon, message = content.partition(":")
    if not colon or not error_type.replace(".", "").isidentifier():
        return "", content[:_MAX_MESSAGE]
    return error_type, message.strip()[:_MAX_MESSAGE]


def _tail(traces: Traces) -> str:
    if traces.stderr_size is None:
        return ""
    try:
        return traces.written.appended(traces.stderr_size, _MAX_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


FIRST_PAUSE_NS: Final = SECOND_NS // 200
LONGEST_PAUSE_NS: Final = SECOND_NS // 5
"""The longest pause between two walks over what is left: of thousands of processes each takes tens of
milliseconds.
"""

_MOST_WALKS: Final = 50
"""So many walks are made in one turn of the loop."""

_LOOKS_AGAIN_S: Final = 1.0

_OF_TERMINALS: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH)
"""termios(3), tty_ioctl(4)."""

_OF_SESSIONS: Final = (*_OF_TERMINALS, signal.SIGHUP, signal.SIGCONT)
"""These a terminal sends to a whole group: credentials(7)."""


class CommandRunner:
    def __init__(
        self,
        arguments: Sequence[str],
        tree: Tree,
        *,
        foreground: bool,
        errors: ErrorFolder | None = None,
        output: "OutputFiles | None" = None,
        copy: "OutputCopy | None" = None,
    ) -> None:
        """``copy`` copies what goes to the files of ``output``."""
        self.tree = tree
        self._errors = errors
        self._output = output
        self._copy = copy
        self.process: ProcessId | None = None
        """The command of the run, also once it has ended; None before the first."""

        self._arguments = arguments
        self._foreground = foreground
        self._run = 0
        self._traces = Traces.before(None, WrittenErrors())
        self._failure: RunFailure | None = None
        self._lives = False
        self._is_empty = True
        self._kills = False
        self._due_ns: int | None = None
        self._pause_ns = FIRST_PAUSE_NS
        self._found: list[SessionInput] = []

    @property
    def command_lives(self) -> bool:
        return self._lives

    @property
    def ended_by_itself(self) -> bool:
        """The command has given a status, and KILL was sent to none of its processes."""
        return not self._kills and self._failure is not None and self._failure.signal is None

    @property
    def written(self) -> WrittenErrors:
        """What the run writes to its standard error."""
        return self._traces.written

    @property
    def is_running(self) -> bool:
        """Something of the run may be left."""
        return not self._is_empty

    def adopt(self, survivors: Sequence[ProcessId], now_ns: int) -> None:
        """They outlived an earlier supervisor. No signal comes when they end: the runner looks."""
        if survivors:
            self.tree.adopt(survivors)
            self._is_empty = False
            self._due_ns = now_ns + LONGEST_PAUSE_NS

    def start(self, run: int, environment: Mapping[str, str], folder: Path | None) -> None:
        """``folder`` is the run's own; None where there is none."""
        own = {"PYTHONFAULTHANDLER": "1"}
        if folder is not None:
            own[ERROR_FILE_VARIABLE] = str(folder / "error.json")
        hook = {} if self._errors is None else self._errors.begin(os.environ)
        output = RunOutput() if self._output is None else self._output.open(run, os.environ)
        added = {
            **environment,
            **hook,
            **output.environment,
            **{name: value for name, value in own.items() if name not in os.environ},
        }
        error_file = added.get(ERROR_FILE_VARIABLE) or os.environ.get(ERROR_FILE_VARIABLE)
        self._traces = Traces.before(Path(error_file) if error_file else None, WrittenErrors(output.errors))
        self._run = run
        if self._copy is not None:
            self._copy.begin(output.copied)
        try:
            self.process = start_command(
                self._arguments, added, foreground=self._foreground, streams=output.descriptors
            )
        except (OSError, ValueError) as error:
            number = error.errno if isinstance(error, OSError) else None
            self._found.append(
                NotRun(run=run, error=number or 0, why=f"{self._arguments[0]}: {_words(error)}")
            )
            return
        finally:
            output.close()
        self._failure = None
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
        if self._foreground and number in _OF_TERMINALS and os.isatty(STDIN):
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

    def wait_alone(self, signals: ReceivedSignals) -> int:
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
        """The processes that are left. As long as a walk finds a new one, the next walk follows at once,
        which leaves no time to fork.
        """
        if self._lives and self.process is not None:  # also where /proc does not show it
            send_to_child(self.process.pid, signal.SIGKILL)
        left: list[Stat] = []
        seen: set[ProcessId] = set()
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
                noted = "" if self._errors is None else self._errors.errors(pid)
                self._failure = failure_of(status, self._traces, noted)
                self._found.append(CommandExited(run=self._run, failure=self._failure))
            else:
                others.append(pid)
        return others

    def look(self) -> None:
        """Whether a run whose command has ended has others left; when something of it has ended."""
        if not self._lives and not self._is_empty and not self.tree.members():
            self._emptied()

    def take(self) -> list[SessionInput]:
        """What was found since the last call."""
        found, self._found = self._found, []
        return found

    def _emptied(self) -> None:
        if self._copy is not None:
            self._copy.end_run()
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
