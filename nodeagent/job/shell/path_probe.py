"""Whether a path of storage answers: asked by a child process, since a call on a server that does not answer
may never return, and the caller cannot be ended then.

It asks for what a server has to be asked for, not what a client may know by heart: the state of the file
system (statfs(2); of NFS a call to the server each time, nfs_statfs of fs/nfs/super.c) and the first entry of
a folder, or the first byte of a file. A child that is stuck is killed and left behind: it ends once the
kernel lets it go. It judges nothing.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Final, NoReturn

from nodeagent.job.model import SECOND_NS
from nodeagent.job.shell.descriptors import close_all_but
from nodeagent.job.shell.tree import Tree

_MAX_ANSWER_BYTES: Final = 4096
_WELL: Final = "well"


class PathProbe:
    """One path, asked again and again; never by two children at once. ``problem`` is "" while it answers, and
    None before the first answer.
    """

    def __init__(self, path: str, limit_s: float, tree: Tree) -> None:
        self.path = path
        self.problem: str | None = None
        self._limit_s = limit_s
        self._tree = tree
        self._child: int | None = None
        self._answer: int | None = None
        self._due_ns: int | None = None

    @property
    def is_asked(self) -> bool:
        """A child is at it, and still has time."""
        return self._due_ns is not None

    @property
    def _late(self) -> str:
        return f"{self.path} does not answer within {self._limit_s:g} s"

    def next_deadline_ns(self) -> int | None:
        return self._due_ns

    def ask(self, now_ns: int) -> None:
        """Raises ``OSError`` where there can be no child."""
        if self._child is not None:  # that of an earlier time is still stuck
            self.problem = self.problem or self._late
            return
        read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            pid = os.fork()
        except OSError:
            os.close(read)
            os.close(write)
            raise
        if pid == 0:
            _ask_as_child(self.path, write)
        os.close(write)
        self._tree.exclude(pid)
        self._child, self._answer = pid, read
        self._due_ns = now_ns + round(self._limit_s * SECOND_NS)

    def tick(self, now_ns: int) -> None:
        """It has not answered in time."""
        if self._due_ns is None or now_ns < self._due_ns:
            return
        self.problem = self._late
        self.leave()

    def ended(self, pid: int) -> None:
        """A child of the supervisor has ended."""
        if pid != self._child or self._answer is None:
            return
        answer = os.read(self._answer, _MAX_ANSWER_BYTES).decode(errors="replace")
        os.close(self._answer)
        if self._due_ns is not None:
            self.problem = "" if answer == _WELL else f"{self.path}: {answer or 'its check was ended'}"
        self._child = self._answer = self._due_ns = None

    def leave(self) -> None:
        """Nobody waits for the answer any more."""
        self._due_ns = None
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)


def _ask_as_child(path: str, answer: int) -> NoReturn:
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        close_all_but({answer})
        os.setsid()
        try:
            _ask(path)
            text = _WELL
        except OSError as error:
            text = error.strerror or str(error)
        except ValueError as error:  # a zero byte in the path
            text = str(error)
        os.write(answer, text.encode(errors="replace")[:_MAX_ANSWER_BYTES])
    finally:
        os._exit(0)


def _ask(path: str) -> None:
    """Raises ``OSError``."""
    os.statvfs(path)
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if os.path.isdir(path):  # noqa: PTH112
        with os.scandir(opened) as entries:
            next(entries, None)
    else:
        os.read(opened, 1)
