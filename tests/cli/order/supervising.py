"""A supervisor in the test's own process, which says only what the test does."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nodeagent.job import lines
from nodeagent.job.model import RunRequest
from tests.waiting import WAIT_LIMIT_S


class Supervising:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")
        self.job = ""

    def say(self, line: lines.Line) -> None:
        self._connection.sendall(lines.encode(line))

    def hear(self, of: type[Any], **how: object) -> Any:
        """The next such line; others before it are passed over."""
        while data := self._file.readline():
            line = lines.decode(data)
            if isinstance(line, of) and all(getattr(line, key) == value for key, value in how.items()):
                return line
        raise AssertionError(f"it ended without a {of.__name__} with {how}")

    def close(self) -> None:
        self._file.close()


@contextmanager
def supervising(path: Path, **how: Any) -> Iterator[Supervising]:
    """A job that runs, and may be stopped and run again."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(WAIT_LIMIT_S)
        connection.connect(str(path))
        supervisor = Supervising(connection)
        supervisor.say(lines.SupervisorHello(pid=1, version="test"))
        supervisor.job = supervisor.hear(lines.Welcome).job
        usual = {"kind": "training", "run": 1, "is_running": True, "in_place": True, "yields": False}
        supervisor.say(lines.JobBegin(**{**usual, "reschedules": False, **how}))
        supervisor.hear(RunRequest)
        try:
            yield supervisor
        finally:
            supervisor.close()
