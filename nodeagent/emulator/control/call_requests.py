"""The base of every request to the control socket, and the requests that change calls.

A request is a structure whose fields are those of the JSON object. Calls can hang, fail, take long, time out
or crash their process.
"""

import re
import signal
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from nodeagent.emulator.layout import FieldError, expect_function
from nodeagent.emulator.node import EmulatedNode

Deliver = Annotated[bool, Meta(description="Send it to subscribers; no: the event is lost.")]
Severity = Annotated[
    int, Meta(description="As the library has it: 0 suggestion, 1 minor, 2 major, 3 critical.")
]
Part = Annotated[int, Meta(description="Of an NPU: the number of its part, such as a port.")]
EventName = Annotated[str, Meta(description="What the event calls it.")]


def code_of(text: str) -> int:
    """A code as people write it: eight hexadecimal digits, with or without 0x. Raises ``FieldError``."""
    try:
        code = int(text, 16)
    except ValueError:
        code = -1
    if not 0 <= code <= 0xFFFFFFFF:
        raise FieldError(f"code: hexadecimal digits such as 80E01801 are right, not {text!r}")
    return code


class EmulatorRequest(msgspec.Struct, tag_field="do", forbid_unknown_fields=True, kw_only=True):
    """``{"do": TAG, …}``."""

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        """Does it; returns the answer. Raises ``ValueError`` or ``LookupError`` with the reason."""
        raise NotImplementedError


_FIELD: Final = re.compile(r"field:\d{1,5}(?::\d{1,3})?", re.ASCII)
_FIELD_BEGINS: Final = "field:"


class _OfCalls(EmulatorRequest):
    device: Annotated[str, Meta(description="Calls about this device; else all calls.")] = ""
    function: Annotated[
        str,
        Meta(
            description="Calls of this function; * at its end: all that begin so. "
            "field:230: one field of a GPU; field:165:3: of its NVLink 3."
        ),
    ] = "*"
    times: Annotated[int, Meta(description="So many calls; else until released.")] = -1

    def _device(self) -> str | None:
        return self.device or None

    def _function(self, node: EmulatedNode) -> str:
        """Raises ``symbols.NoSuchFunction`` and ``FieldError``: a misspelt one would never do anything."""
        if self.function.startswith(_FIELD_BEGINS):
            if not _FIELD.fullmatch(self.function):
                right = "field:230 for a field of a GPU, or field:165:3 for its NVLink 3, is right"
                raise FieldError(f"function: {right}, not {self.function!r}")
        elif self.function != "*":
            expect_function(node.directory.glob("lib*.so*"), self.function)
        return self.function


class HangCalls(_OfCalls, tag="hang"):
    """Let calls hang: of one device, or all. With lock the first one holds the driver's lock: all hang."""

    uninterruptibly: Annotated[
        bool, Meta(description="In the kernel, in state D, where no signal ends them.")
    ] = False
    lock: Annotated[
        bool, Meta(description="The first call holds the driver's lock: all others hang too.")
    ] = False
    for_s: Annotated[float, Meta(description="Seconds until they go on; 0: until released.")] = 0

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        number = node.hang(
            self._device(),
            self._function(node),
            uninterruptibly=self.uninterruptibly,
            lock=self.lock,
            for_s=self.for_s,
            times=self.times,
        )
        return {"number": number}


class AnswerCalls(_OfCalls, tag="answer", kw_only=True):
    """Let calls answer this number, such as -8006, instead of what they would.

    -1: a field of a GPU is left as it came.
    """

    answer: int

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        return {"number": node.answer(self.answer, self._device(), self._function(node), times=self.times)}


class DelayCalls(_OfCalls, tag="delay", kw_only=True):
    """Let calls take so many milliseconds longer."""

    delay_ms: int

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        return {"number": node.delay(self.delay_ms, self._device(), self._function(node), times=self.times)}


class TimeOutCalls(_OfCalls, tag="time-out", kw_only=True):
    """Let calls of a device take so many milliseconds, while all other calls wait, and answer this number."""

    device: str
    delay_ms: int
    answer: int

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        number = node.time_out(
            self.device, self._function(node), delay_ms=self.delay_ms, answer=self.answer, times=self.times
        )
        return {"number": number}


class CrashCalls(_OfCalls, tag="crash"):
    """Let the next call end its process."""

    times: Annotated[int, Meta(description="So many calls, one process each.")] = 1
    signal: Annotated[int, Meta(description="What the process dies of.")] = signal.SIGSEGV

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        number = node.crash(self._device(), self._function(node), signal_number=self.signal, times=self.times)
        return {"number": number}


class ReleaseCalls(EmulatorRequest, tag="release"):
    """End what was done to calls: all of it, or what has the number."""

    number: Annotated[int, Meta(description="The number that the command answered; else all.")] = -1

    def do(self, node: EmulatedNode) -> dict[str, Any]:
        node.release(None if self.number < 0 else self.number)
        return {}


CALL_REQUESTS: Final[tuple[type[EmulatorRequest], ...]] = (
    HangCalls,
    AnswerCalls,
    DelayCalls,
    TimeOutCalls,
    CrashCalls,
    ReleaseCalls,
)
"""Each has a command of its name."""
