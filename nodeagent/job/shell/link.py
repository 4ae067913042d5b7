"""The client's end of the daemon's socket for jobs: lines out, lines in, and a connection that comes back.

It never blocks: a connection to a socket without a server fails at once and is tried again later, after 0.2
to 5 s. A report is sent again after each reconnect, until the daemon has taken it. It decides nothing; its
owner begins the job after a welcome. The lines themselves are
imported once there is a daemon.
"""

from __future__ import annotations

import selectors
import socket
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from nodeagent.job.model import SECOND_NS, RunReport

if TYPE_CHECKING:
    from nodeagent.job.lines import (
        Bye,
        ChipReadings,
        FromSupervisor,
        JobBegin,
        ReportTaken,
        SupervisorHello,
        Welcome,
    )
    from nodeagent.job.model import RunRequest

    Received: TypeAlias = "Welcome | RunRequest | ChipReadings | ReportTaken | ConnectionLost"

DEFAULT_SOCKET: Final = "/run/nodeagent/jobs.sock"
SOCKET_VARIABLE: Final = "NODEAGENT_JOBS_SOCKET"

FIRST_PAUSE_NS: Final = SECOND_NS // 5
LONGEST_PAUSE_NS: Final = 5 * SECOND_NS
WELCOME_WITHIN_NS: Final = 2 * SECOND_NS
"""A daemon that accepts and then sends nothing is as good as none."""

WANT_WITHIN_NS: Final = 30 * SECOND_NS
"""So is one that does not send what it wants of a job that begins: it does so once that is on its disk."""

MAX_READ_BYTES: Final = 65_536
MAX_UNSENT_BYTES: Final = 4 * MAX_READ_BYTES


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The connection has ended, or none came about."""

    why: str


class DaemonLink:
    """``is_welcome`` is true between a welcome and the end of that connection. ``hello`` makes the first line
    of each."""

    def __init__(self, path: str, hello: Callable[[], SupervisorHello]) -> None:
        self._path = path
        self._hello = hello
        self._socket: socket.socket | None = None
        self._inward = bytearray()
        self._outward = bytearray()
        self._untaken: dict[int, RunReport | Bye] = {}
        self._received: deque[Received] = deque()
        self._pause_ns = FIRST_PAUSE_NS
        self._due_ns: int | None = 0
        self._has_begun = False
        self._reports: tuple[str, ...] = ()
        self.is_welcome = False

    # ------------------------------------------------------------------ what the loop needs

    def fileno(self) -> int | None:
        return None if self._socket is None else self._socket.fileno()

    @property
    def events(self) -> int:
        """What to wait for, as ``selectors`` has it."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outward else 0)

    def next_deadline_ns(self) -> int | None:
        """When ``tick`` has something to do."""
        return self._due_ns

    def tick(self, now_ns: int) -> list[Received]:
        """Connects where it is time, and gives up a daemon that does not answer."""
        if self._due_ns is None or now_ns < self._due_ns:
            return self._taken_out()
        if self._socket is not None:
            missing = "request" if self._has_begun else "welcome"
            self._lose(f"no {missing} came", now_ns)
        else:
            self._connect(now_ns)
        return self._taken_out()

    def ready(self, now_ns: int) -> list[Received]:
        """The socket can be read or written."""
        if self._socket is not None:
            self._send(now_ns)
        if self._socket is not None:
            self._receive(now_ns)
        return self._taken_out()

    # ------------------------------------------------------------------ what the supervisor sends

    def begin(self, begin: JobBegin, now_ns: int) -> None:
        """After a welcome. Every report that was not taken follows."""
        self._has_begun = self.is_welcome
        self._untaken = {number: each for number, each in self._untaken.items() if self._is_known(each)}
        self._due_ns = now_ns + WANT_WITHIN_NS if self.is_welcome else self._due_ns
        self._put(begin, now_ns)
        for message in self._untaken.values():
            self._put(message, now_ns)

    def send(self, message: RunReport | Bye, now_ns: int) -> None:
        """What the daemon is too old for is dropped."""
        if self._has_begun and not self._is_known(message):
            return
        self._untaken[message.number] = message
        if self._has_begun:
            self._put(message, now_ns)

    def ask(
        self, number: int, now_ns: int, step_s: float | None = None, start_s: float | None = None
    ) -> bool:
        """Ask for the readings of the job's chips, and report the limits that were learnt; false if the
        daemon cannot be asked.
        """
        if self._has_begun:
            from nodeagent.job.lines import AskChips, LearntLimits

            self._put(AskChips(number=number, limits=LearntLimits(step_s=step_s, start_s=start_s)), now_ns)
        return self._has_begun

    @property
    def has_untaken(self) -> bool:
        return bool(self._untaken)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # ------------------------------------------------------------------ inside

    def _is_known(self, message: RunReport | Bye) -> bool:
        from nodeagent.job.lines import ADDED_REPORTS

        if not isinstance(message, RunReport) or message.what not in ADDED_REPORTS:
            return True
        return message.what.value in self._reports

    def _connect(self, now_ns: int) -> None:
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            opened.connect(self._path)
        except OSError as error:  # no server, or so many clients that the kernel lets no more wait (EAGAIN)
            opened.close()
            self._retry(f"{self._path}: {error.strerror or error}", now_ns)
            return
        self._socket = opened
        self._due_ns = now_ns + WELCOME_WITHIN_NS
        self._put(self._hello(), now_ns)

    def _retry(self, why: str, now_ns: int) -> None:
        self._received.append(ConnectionLost(why))
        self._due_ns = now_ns + self._pause_ns
        self._pause_ns = min(2 * self._pause_ns, LONGEST_PAUSE_NS)

    def _lose(self, why: str, now_ns: int) -> None:
        self.close()
        self.is_welcome = self._has_begun = False
        self._inward.clear()
        self._outward.clear()
        self._retry(why, now_ns)

    def _put(self, line: FromSupervisor, now_ns: int) -> None:
        from nodeagent.job.lines import encode

        if self._socket is None:
            return
        self._outward += encode(line)
        if len(self._outward) > MAX_UNSENT_BYTES:
            self._lose("the daemon does not read", now_ns)
            return
        self._send(now_ns)

    def _send(self, now_ns: int) -> None:
        assert self._socket is not None
        try:
            while self._outward:
                del self._outward[: self._socket.send(self._outward)]
        except BlockingIOError:
            pass
        except OSError as error:
            self._lose(f"{self._path}: {error.strerror}", now_ns)
            return

    def _receive(self, now_ns: int) -> None:
        assert self._socket is not None
        try:
            data = self._socket.recv(MAX_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(f"{self._path}: {error.strerror}", now_ns)
            return
        if not data:
            self._lose("the daemon has ended the connection", now_ns)
            return
        self._inward += data
        while (end := self._inward.find(b"\n")) >= 0:
            line = bytes(self._inward[:end])
            del self._inward[: end + 1]
            self._understand(line, now_ns)
        if len(self._inward) > MAX_READ_BYTES:
            self._lose("the daemon sent a line that is too long", now_ns)

    def _understand(self, data: bytes, now_ns: int) -> None:
        from nodeagent.job.codec import CodecError
        from nodeagent.job.lines import ChipReadings, ReportTaken, SupervisorRefused, Welcome, decode, tag_of
        from nodeagent.job.model import RunRequest

        try:
            line = decode(data)
        except CodecError as error:
            self._lose(f"the daemon sent a line that is not understood: {error}", now_ns)
            return
        if isinstance(line, SupervisorRefused):
            self._lose(f"the daemon refuses: {line.why}", now_ns)
        elif isinstance(line, Welcome):
            self._welcomed(line, now_ns)
        elif isinstance(line, ReportTaken):
            self._untaken.pop(line.number, None)
            self._received.append(line)
        elif isinstance(line, RunRequest | ChipReadings) and self.is_welcome:
            if isinstance(line, RunRequest):
                self._due_ns = None
            self._received.append(line)
        else:
            self._lose(f"the daemon sent a line out of turn: {tag_of(line)}", now_ns)

    def _welcomed(self, line: Welcome, now_ns: int) -> None:
        from nodeagent.job.lines import PROTOCOL

        if line.protocol != PROTOCOL:
            self._lose(f"the daemon speaks protocol {line.protocol}, this supervisor {PROTOCOL}", now_ns)
            return
        self.is_welcome = True
        self._reports = line.reports
        self._due_ns = None
        self._pause_ns = FIRST_PAUSE_NS
        self._received.append(line)

    def _taken_out(self) -> list[Received]:
        received = list(self._received)
        self._received.clear()
        return received


def socket_path(given: str, environment: Mapping[str, str]) -> str:
    """The path given by ``--socket``, else by the variable, else the daemon's usual one."""
    return given or environment.get(SOCKET_VARIABLE) or DEFAULT_SOCKET
