"""What a process needs to run a pure loop: a clock, the signals it receives, and the runner.

A pure loop takes one input at a time and returns effects (``session``, ``step.loop``). The runner gives it
the inputs in their order and does the effects by a table. It decides nothing.
"""

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, Final, Generic, TypeVar

from nodeagent.job.model import SECOND_NS

Input = TypeVar("Input")


def now_ns() -> int:
    """CLOCK_BOOTTIME, which goes on while the machine sleeps. A supervisor has no other clock."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def seconds(at_ns: int) -> float:
    return at_ns / SECOND_NS


class LoopRunner(Generic[Input]):
    """``step`` gives an input to the loop and returns its effects; ``effects`` does each by its type.
    ``found`` gives the inputs that doing them has caused.
    """

    def __init__(
        self,
        step: Callable[[Input], Iterable[object]],
        effects: Mapping[type, Callable[[Any], None]],
        found: Callable[[], Iterable[Input]] = tuple,
    ) -> None:
        self._step = step
        self._effects = effects
        self._found = found
        self._waiting: deque[Input] = deque()

    @property
    def waiting(self) -> Iterable[Input]:
        """The input whose effects are being done now, and those that follow it."""
        return tuple(self._waiting)

    def give(self, given: Input) -> None:
        """An input that an effect causes is given after all effects of the step before it."""
        self._waiting.append(given)
        if len(self._waiting) > 1:
            return
        while self._waiting:
            for effect in self._step(self._waiting[0]):
                self._effects[type(effect)](effect)
            self._waiting.popleft()
            self._waiting.extend(self._found())


# ---------------------------------------------------------------------- signals

ENDING: Final = (signal.SIGTERM, signal.SIGINT)
"""Signals that end the job."""

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
"""The command gets these as if it had been called without a supervisor: also those that a batch system sends
as a warning, which would end the supervisor. (Python itself handles XFSZ and PIPE.)"""


class ReceivedSignals:
    """The signals that a supervisor receives: a descriptor to wait on, and their numbers. It acts on none."""

    def __init__(self) -> None:
        self._read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (*ENDING, *PASSED_ON):
            # A signal that is ignored (by nohup, by a shell for its background) stays ignored in the command.
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
