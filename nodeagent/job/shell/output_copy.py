"""The process that copies what a command writes into files to the streams that the supervisor was given.

The command writes into the files itself, so nothing here can block it, end it or lose a byte of it: not a
reader that stands still, not the end of this process, not KILL to the supervisor. If the supervisor is gone,
the copy goes on until no process of this user has a file open for writing. It reads the files of one run
after the other, each stream in its order, and writes nothing else. It decides nothing about the job.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from nodeagent.job.shell import procfs
from nodeagent.job.shell.descriptors import close_all_but
from nodeagent.job.shell.standard_error import print_message

_PIECE_BYTES: Final = 1 << 20
_LOOK_EACH_S: Final = 1.0
"""Also without a notice: of a file system that gives none."""

_BATCH_S: Final = 0.01
"""Lines that come one by one are copied together."""

_RUN: Final = b"run "
_ENDED: Final = b"ended"
_LEAVES: Final = b"leaves"
_COPIED: Final = b"copied"
_MAX_MESSAGE_BYTES: Final = 16_384

STUCK_AFTER_S: Final = 10.0
"""A reader that has taken nothing for so long is not waited for when the supervisor leaves."""

_SCAN_EACH_S: Final = 2.0
"""How often it is looked whether a process may still write, once the supervisor is gone."""


class OutputCopy:
    """The supervisor's end. Raises ``OSError`` where the process cannot be made."""

    def __init__(self) -> None:
        self._control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            _copy_as_child(other)
        other.close()
        self._control.setblocking(False)

    def begin(self, files: Mapping[int, tuple[Path, int]]) -> None:
        """A run begins, whose streams go to these files: by the descriptor to copy to, with the size of the
        file before the run.
        """
        texts = [f"{descriptor} {size} {path}" for descriptor, (path, size) in files.items()]
        self._send(_RUN + os.fsencode("\0".join(texts)))

    def end_run(self) -> None:
        """Nothing of the run is left: the rest of its files is copied, and no more."""
        self._send(_ENDED)

    def close(self) -> bool:
        """Wait until all that was written is copied; whether it is. A reader that does not read is not waited
        for, nor are processes of the job that are left: what they write later is copied without a supervisor.
        """
        self._send(_LEAVES)
        try:
            return self._is_answered() and self._control.recv(_MAX_MESSAGE_BYTES) == _COPIED
        except OSError:
            return False
        finally:
            self._control.close()

    def _is_answered(self) -> bool:
        copied, since_s = self._copied(), time.monotonic()
        while not select.select([self._control], [], [], _LOOK_EACH_S)[0]:
            if (copied_now := self._copied()) != copied:
                copied, since_s = copied_now, time.monotonic()
            elif time.monotonic() - since_s >= STUCK_AFTER_S:
                return False
        return True

    def _copied(self) -> int | None:
        return procfs.counters(self.pid).get(b"wchar:")

    def _send(self, message: bytes) -> None:
        """One that was killed gets nothing: the files have it all."""
        with suppress(OSError):
            self._control.send(message)


# ---------------------------------------------------------------------- in the child


def _copy_as_child(control: socket.socket) -> NoReturn:
    """A scheduler may signal every process of a job: it ends by itself once the job has."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
            with suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
        close_all_but({1, 2, control.fileno()})
        _Copying(control).run()
    except BaseException as error:
        print_message(f"the output is copied no further ({error!r}); its files have all of it")
        raise
    finally:
        os._exit(0)


class _Stream:
    """One file, and the descriptor that it is copied to."""

    def __init__(self, text: str) -> None:
        number, size, self.path = text.split(" ", 2)
        self._to: int | None = int(number)
        self._from = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        self._place = int(size)

    @property
    def left(self) -> int:
        """How many bytes were written and not yet copied."""
        size = os.fstat(self._from).st_size
        if size < self._place:  # somebody has emptied it
            self._place = 0
        return size - self._place

    def copy(self) -> int:
        """What is new, at most a piece; its size. Once the reader has gone, it is only passed over."""
        if not self.left:
            return 0
        piece = os.pread(self._from, _PIECE_BYTES, self._place)
        self._place += len(piece)
        left = memoryview(piece)
        while left and self._to is not None:
            try:
                left = left[os.write(self._to, left) :]
            except BlockingIOError:  # somebody has made the stream that all share non-blocking
                select.select([], [self._to], [])
            except OSError:  # no reader any more, a terminal that has gone, a full disk
                self._to = None
        return len(piece)

    def close(self) -> None:
        os.close(self._from)


class _Copying:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._notices = _FileNotices()
        self._streams: list[_Stream] = []
        self._waits_for: tuple[int, ...] = (control.fileno(),)
        self._writer_seen_s = float("-inf")

    def run(self) -> None:
        while (message := self._received()) is not None:
            if message.startswith(_RUN):
                self._end_run()
                self._begin(os.fsdecode(message[len(_RUN) :]).split("\0"))
            elif message == _ENDED:
                self._end_run()
            elif message == _LEAVES:
                self._drain()
                self._control.send(_COPIED)
        self._waits_for = ()
        self._copy_while(self._has_writer)
        self._end_run()

    def _received(self) -> bytes | None:
        """The next message; None once the supervisor is gone. What comes meanwhile is copied."""
        self._copy_while(lambda: not select.select([self._control], [], [], 0)[0])
        try:
            return self._control.recv(_MAX_MESSAGE_BYTES) or None
        except OSError:
            return None

    def _begin(self, texts: Iterable[str]) -> None:
        for text in texts:
            with suppress(OSError, ValueError):  # no file, or somebody has removed it
                self._streams.append(_Stream(text))
        self._notices.watch(each.path for each in self._streams)

    def _copy_while(self, goes_on: Callable[[], bool]) -> None:
        while self._streams and goes_on():
            copied = sum([each.copy() for each in self._streams])
            if not copied:
                self._wait()
            elif copied < _PIECE_BYTES:
                time.sleep(_BATCH_S)

    def _wait(self) -> None:
        limit_s = _LOOK_EACH_S if self._notices.descriptors else _LOOK_EACH_S / 10
        select.select((*self._waits_for, *self._notices.descriptors), [], [], limit_s)
        self._notices.take()

    def _drain(self) -> None:
        """What has been written by now."""
        left = {each: each.left for each in self._streams}
        while any(size > 0 for size in left.values()):
            left = {each: size - (each.copy() or size) for each, size in left.items() if size > 0}

    def _end_run(self) -> None:
        self._drain()
        for each in self._streams:
            each.close()
        self._streams.clear()

    def _has_writer(self) -> bool:
        if time.monotonic() - self._writer_seen_s >= _SCAN_EACH_S:
            if not _has_writer(each.path for each in self._streams):
                return False
            self._writer_seen_s = time.monotonic()
        return True


def _has_writer(paths: Iterable[str]) -> bool:
    """Whether a process of this user, but the caller, may still write to one of them."""
    wanted = {os.path.realpath(each) for each in paths}
    own = os.getpid()
    for pid in procfs.pids():
        if pid == own:
            continue
        with suppress(OSError):
            if any(str(each.readlink()) in wanted for each in Path(f"/proc/{pid}/fd").iterdir()):
                return True
    return False


_IN_MODIFY: Final = 0x2
_IN_NONBLOCK_CLOEXEC: Final = os.O_NONBLOCK | os.O_CLOEXEC
_MAX_NOTICES_BYTES: Final = 65_536


class _FileNotices:
    """inotify(7): readable when one of the files was written to. ``descriptors`` is () where the kernel gives
    none.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptors: tuple[int, ...] = ()

    def watch(self, paths: Iterable[str]) -> None:
        for each in self.descriptors:
            os.close(each)
        self.descriptors = ()
        opened: int = self._libc.inotify_init1(_IN_NONBLOCK_CLOEXEC)
        if opened < 0:
            return
        added = [self._libc.inotify_add_watch(opened, os.fsencode(each), _IN_MODIFY) for each in paths]
        if min(added, default=-1) < 0:
            os.close(opened)
        else:
            self.descriptors = (opened,)

    def take(self) -> None:
        for each in self.descriptors:
            with suppress(BlockingIOError):
                os.read(each, _MAX_NOTICES_BYTES)
