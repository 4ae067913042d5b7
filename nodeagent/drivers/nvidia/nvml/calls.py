"""Calls into NVML for one GPU: which answers are values, which are faults, and when a question is asked
again.

NVML answers each call with a number. An answer about the whole GPU (it is lost, it must be reset) becomes an
exception. So do an answer about the driver, if the driver itself agrees, and a call that fails after it has
hung, because it blocked the calls for all other GPUs. A refused question (NOT_SUPPORTED, FUNCTION_NOT_FOUND)
is asked again seldom, because the GPU may lack the feature; if it was answered before, it is asked at each
poll. Any other failure leaves its value out. No call is repeated at once, and nothing is judged.
"""

import math
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pynvml

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.nvidia.nvml.baseline import FIELD, GpuBaseline, Question

NAMES: Final[dict[int, str]] = {
    value: name.removeprefix("NVML_ERROR_")
    for name, value in vars(pynvml).items()
    if name.startswith("NVML_ERROR_") and isinstance(value, int)
}
"""``str`` of an NVMLError may call into the library; these do not."""

_FIELDS: Final[Mapping[int, str]] = {
    value: name.removeprefix("NVML_FI_DEV_")
    for name, value in reversed(vars(pynvml).items())
    if name.startswith("NVML_FI_DEV_") and isinstance(value, int)
}

UNSUPPORTED: Final = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        pynvml.NVML_ERROR_DEPRECATED,
    }
)
NOT_OF_THIS_GPU: Final = UNSUPPORTED | {pynvml.NVML_ERROR_INVALID_ARGUMENT}
"""What is asked for by its number, such as a link, may be one that this GPU does not have."""

FAULTS: Final[dict[int, str]] = {
    pynvml.NVML_ERROR_INSUFFICIENT_POWER: "NV_INSUFFICIENT_POWER",
    pynvml.NVML_ERROR_IRQ_ISSUE: "NV_IRQ_ISSUE",
    pynvml.NVML_ERROR_GPU_IS_LOST: "NV_GPU_LOST",
    pynvml.NVML_ERROR_RESET_REQUIRED: "NV_GPU_RESET_REQUIRED",
    pynvml.NVML_ERROR_NOT_READY: "NV_NOT_READY",
}
"""The codes for what NVML reports about a GPU in place of a value, or of a handle
(nvmlDeviceGetHandleByIndex_v2 in nvml.h).
"""

STALE: Final = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
"""After these no handle of the process is good any more, if the driver itself confirms it."""

HUNG: Final = frozenset({pynvml.NVML_ERROR_TIMEOUT, pynvml.NVML_ERROR_UNKNOWN})
HANG_S: Final = 2.0
"""A call that fails so after so long has waited in vain for the GPU's own processor (GSP): 6 or 45 s, all
GPUs locked (``_kgspRpcRecvPoll`` in kernel_gsp.c of NVIDIA's open modules). Those that it held up succeed.
"""

AGAIN_S: Final = (60.0, 600.0, 3600.0)
"""What is refused and never was answered is asked again after so long, the last again and again."""

AGAIN_AFTER_NEWS_S: Final = 60.0
"""After an Xid or a fault it is asked again at once, but no more often than this."""

Variant = tuple[Hashable, ...]
C = TypeVar("C", bound=Callable[..., Any])


class GpuFault(Exception):
    """NVML reports that the GPU itself is at fault; ``code`` is the fault's."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class DriverGone(CallFailed):
    """NVML reports that its driver was unloaded or replaced; ``errno`` is its number."""


class GpuHung(CallFailed):
    """A call for this GPU failed after it had hung for ``took_s``."""

    def __init__(self, what: str, number: int, took_s: float) -> None:
        super().__init__(f"{what} hung for {took_s:.0f} s: {name_of(number)}", errno=number)
        self.took_s = took_s


def name_of(number: int) -> str:
    return NAMES.get(number, f"NVML error {number}")


def words_of(question: Question) -> str:
    """The function's name in nvml.h, or the field's, and the link or the like that it was asked for."""
    name, *rest = question
    if name == FIELD:
        number, scope = rest
        named = _FIELDS.get(int(number), f"field {number}")
        return f"{named}/{scope}" if scope else named
    return "/".join(map(str, question))


_ASKS: Final[dict[str, str]] = {}


def asks(function: str) -> Callable[[C], C]:
    """The function of NVML that a function here calls."""

    def named(call: C) -> C:
        _ASKS[call.__name__] = function
        return call

    return named


def answer_of_the_driver() -> int:
    """The state of the driver as a whole, one of ``STALE``; 0: nothing is wrong with it."""
    for ask in (pynvml.nvmlSystemGetDriverVersion, pynvml.nvmlDeviceGetCount):
        try:
            ask()
        except pynvml.NVMLError as error:
            if error.value in STALE:
                return int(error.value)
    return 0


class Calls:
    """The calls about one GPU, for one thread. ``turn`` begins a poll; the counts are those of the poll.

    ``unanswered``: what was refused though it was answered before, or failed, with NVML's number. ``now_s``
    is a clock that does not step.
    """

    def __init__(
        self,
        handle: Any,
        baseline: GpuBaseline | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.handle = handle
        self.refused = 0
        self.answered = 0
        self.failed: list[str] = []
        self.failed_number = 0
        self.unanswered: dict[Question, int] = {}
        self._baseline = baseline or GpuBaseline()
        self._now_s = now_s
        self._lacking: dict[Question, tuple[int, float]] = {}
        self._failing: set[Question] = set()
        self._has_news = False
        self._news_s = -math.inf

    def turn(self) -> None:
        self.answered = 0
        self.failed = []
        self.failed_number = 0
        if not self._has_news:
            return
        self._has_news, now_s = False, self._now_s()
        if now_s - self._news_s >= AGAIN_AFTER_NEWS_S:
            self._news_s = now_s
            self._lacking = {question: (times, now_s) for question, (times, _) in self._lacking.items()}

    def ask(
        self,
        call: Callable[..., Any],
        *arguments: Any,
        variant: Variant = (),
        absent: Collection[int] = UNSUPPORTED,
    ) -> Any:
        """``call(handle, *arguments)``, or None where it has no value to give.

        ``variant`` distinguishes what may be supported separately, such as the links; ``absent`` are the
        answers by which it is not supported. Raises ``GpuFault``, ``GpuHung`` and ``DriverGone``.
        """
        tried = self._try(call, arguments, variant)
        self._settle([tried], absent)
        return tried.value

    def newest(self, *versions: tuple[Callable[..., Any], Callable[..., Any]], strict: bool = False) -> Any:
        """The first of several versions of a call that answers, each with what reads its value.

        ``strict``: an older one is asked only where the newer is not there, not where it failed.
        """
        found = None
        tries: list[_Try] = []
        for call, read in versions:
            tried = self._try(call, (), ())
            tries.append(tried)
            if tried.number == pynvml.NVML_SUCCESS:
                found = None if tried.value is None else read(tried.value)
                break
            is_there = tried.number not in UNSUPPORTED and tried.number != _NOT_ASKED
            if is_there and (strict or tried.number in _OF_ALL_VERSIONS):
                break
        self._settle(tries, UNSUPPORTED)
        if found is not None:
            for call, _ in versions:
                self.unanswered.pop(_question(call, ()), None)
        return found

    def lacks(self, call: Callable[..., Any], *variant: Hashable) -> bool:
        """Whether it was refused when it was asked for last."""
        return _question(call, variant) in self._lacking

    def is_lost(self, *calls: Callable[..., Any]) -> bool:
        """Whether all of these versions are refused, and one was answered before."""
        questions = [_question(call, ()) for call in calls]
        return any(map(self.has_lost, questions)) and all(map(self.is_refused, questions))

    def ask_again(self) -> None:
        """There is news of the GPU: what it refused it may answer from the next poll on. From any thread."""
        self._has_news = True

    # ------------------------------------------------------------------ for ``fields`` too

    def ask_for_fields(self, call: Callable[..., Any], request: Any) -> tuple[Any, int]:
        """The answer to a list of fields, and NVML's number. A list that is refused as a whole means nothing:
        another one may be answered. Raises as ``ask``.
        """
        tried = self._try(call, (request,), ())
        if tried.number in NOT_OF_THIS_GPU:
            self.answered += 1
            self._failing.discard(tried.question)
            self.unanswered.pop(tried.question, None)
        else:
            self._settle([tried], ())
        return tried.value, tried.number

    def is_due(self, question: Question) -> bool:
        """Whether it is to be asked: it was never refused, or was answered before, or that was long ago."""
        lacking = self._lacking.get(question)
        return lacking is None or self._now_s() >= lacking[1] or self._baseline.was_answered(question)

    def is_refused(self, question: Question) -> bool:
        return question in self._lacking

    def has_lost(self, question: Question) -> bool:
        return question in self._lacking and self._baseline.was_answered(question)

    def take_answer(self, question: Question) -> None:
        self._baseline.answered(question)
        self._lacking.pop(question, None)
        self._failing.discard(question)
        self.unanswered.pop(question, None)

    def take_refusal(self, question: Question, number: int) -> None:
        """The GPU does not have it, or not any more."""
        times, _ = self._lacking.get(question, (0, 0.0))
        self._lacking[question] = (times + 1, self._now_s() + AGAIN_S[min(times, len(AGAIN_S) - 1)])
        self._failing.discard(question)
        if self._baseline.was_answered(question):
            self.unanswered[question] = number
        else:
            self.unanswered.pop(question, None)

    def take_failure(self, question: Question, number: int, what: str) -> None:
        """``what`` is its name in messages. Raises ``GpuFault`` and ``DriverGone``."""
        if number in FAULTS:
            raise GpuFault(FAULTS[number])
        if number in STALE and (gone := answer_of_the_driver()):
            raise DriverGone(f"{what}: {name_of(gone)}", errno=gone)
        self._failing.add(question)
        self.unanswered[question] = number
        self.failed.append(f"{what}: {name_of(number)}")
        self.failed_number = number

    # ------------------------------------------------------------------ one call

    def _try(self, call: Callable[..., Any], arguments: tuple[Any, ...], variant: Variant) -> "_Try":
        """Raises ``GpuHung``."""
        question, what = _question(call, variant), call.__name__.strip("_")
        if not self.is_due(question):
            return _Try(question, what, _NOT_ASKED)
        begun_s = time.monotonic()
        try:
            value = call(self.handle, *arguments)
        except pynvml.NVMLError as error:
            number, took_s = int(error.value), time.monotonic() - begun_s
            if took_s >= HANG_S and number in HUNG and question not in self._failing:
                raise GpuHung(what, number, took_s) from None
            return _Try(question, what, number)
        except UnicodeDecodeError:
            self.refused += 1
            return _Try(question, what, pynvml.NVML_SUCCESS)
        return _Try(question, what, pynvml.NVML_SUCCESS, value)

    def _settle(self, tries: Collection["_Try"], absent: Collection[int]) -> None:
        """What the versions of one question have answered: one that did is enough."""
        has_answered = any(tried.number == pynvml.NVML_SUCCESS for tried in tries)
        failures = []
        for tried in tries:
            if tried.number == pynvml.NVML_SUCCESS:
                self.answered += 1
                self.take_answer(tried.question)
            elif tried.number in absent:
                self.answered += not has_answered
                self.take_refusal(tried.question, tried.number)
            elif tried.number != _NOT_ASKED and (tried.number in FAULTS or not has_answered):
                failures.append(tried)
        # The answer of the newest is enough, unless another one is that the GPU is at fault.
        for tried in sorted(failures, key=lambda tried: tried.number not in FAULTS)[:1]:
            self.take_failure(tried.question, tried.number, tried.what)


_NOT_ASKED: Final = -1
_OF_ALL_VERSIONS: Final = frozenset({*FAULTS, pynvml.NVML_ERROR_TIMEOUT})
"""An older version of the call would answer the same, or take as long."""


@dataclass(frozen=True, slots=True)
class _Try:
    """What came of one call: NVML's number, ``_NOT_ASKED`` where it was not made, and its value."""

    question: Question
    what: str
    number: int
    value: Any = None


def _question(call: Callable[..., Any], variant: Variant) -> Question:
    name = call.__name__
    return (_ASKS.get(name, name), *(each if isinstance(each, int) else str(each) for each in variant))


class GpuReadings:
    """Fills ``values``, the telemetry of one poll; what no GPU can mean is refused and counted."""

    def __init__(self, calls: Calls, values: dict[str, float]) -> None:
        self.values = values
        self._calls = calls

    def put(
        self, name: str, value: float | None, *, least: float = 0.0, most: float = 2.0**63, scale: float = 1.0
    ) -> None:
        """``value`` within its bounds, times ``scale``; None leaves the reading out."""
        if value is None:
            return
        if not (math.isfinite(value) and least <= value <= most):
            self._calls.refused += 1
            return
        self.values[name] = float(value) * scale
