"""The one clock of the supervisor: CLOCK_BOOTTIME, which goes on while the machine sleeps.

Signals that the supervisor gets, as a descriptor to wait on and numbers to read. It acts on none.
"""

import os
import signal
import time
from types import FrameType
from typing import Final

from nodeagent.job.model import SECOND_NS


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def seconds(at_ns: int) -> float:
    return at_ns / SECOND_NS


ENDING: Final = (signal.SIGTERM, signal.SIGINT)
"""Whoever sends these ends the job."""

PASSED_ON: Final = (
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
    signal.SIGWINCH,
    signal.SIGALRM,
    signal.SIGIO,
    signal.SIGPROF,
    signal.SIGPWR,
    signal.SIGURG,
    signal.SIGVTALRM,
    signal.SIGXCPU,
    *range(signal.SIGRTMIN, signal.SIGRTMAX + 1),
)
"""The command gets them as if it had been called without a supervisor: also those that a batch system is told
to warn with, which would end the supervisor. (Of XFSZ and PIPE Python has its own opinion.)"""


class ReceivedSignals:
    def __init__(self) -> None:
        self._read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (*ENDING, *PASSED_ON):
            # What is ignored (by nohup, by a shell for its background) the command is to ignore, too.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _noted)
        signal.signal(signal.SIGCHLD, _noted)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def fileno(self) -> int:
        return self._read

    def take(self) -> list[int]:
        """The numbers that came since the last call."""
        try:
            return list(os.read(self._read, 65_536))
        except BlockingIOError:
            return []


def _noted(_number: int, _frame: FrameType | None) -> None:
    """Python writes the number to the wake-up descriptor, and does so only where there is a handler."""
