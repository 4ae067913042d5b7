"""What is known of why a command failed: the kind of failure, and a signature that is stable over runs.

It reads what torch has written of the error, else the errors at the end of what the run wrote. Of several it
takes the last that does not merely follow from another rank's end. It never guesses: what it does not know is
unknown. A status or a signal alone has no signature, for two failures that share it may have nothing else in
common.
"""

import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from nodeagent.job.model import FailureKind, KnownFailure
from nodeagent.job.session.failure_patterns import ROWS, ExitRow
from nodeagent.job.session.values import RunFailure

_MAX_LINE: Final = 300

_PREFIX: Final = re.compile(r"^(?:\[[A-Za-z]+ ?\d+\]: ?|\d+: )*")
"""``[rank3]:`` of torch, ``[default0]:`` of torchrun's --tee, ``3:`` of srun --label."""

_UNCAUGHT: Final = re.compile(r"\[rank ?\d+\]:")
"""torch puts it before an uncaught exception, and before no other:
torch/distributed/distributed_c10d.py, _distributed_excepthook."""

_TRACEBACK: Final = "Traceback (most recent call last):"
_ERROR_LINE: Final = re.compile(r"^([A-Za-z_][\w.]*)(?:: ?(.*))?$")
_INNER: Final = re.compile(r"^( |$|\s*\||\+-)")

_LINKS: Final = frozenset(
    {
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    }
)
"""Between the exceptions of a chain: only the last one was raised (CPython, Lib/traceback.py)."""

_NOT_THE_END: Final = re.compile(
    r"Exception ignored |Exception in (thread|callback) |--- Logging error ---|Error in (atexit|sys)\b"
    r"|(Task|Future) exception was never retrieved"
)
"""Before a traceback of what ended no process: CPython, sys.unraisablehook, threading.excepthook,
logging.Handler.handleError, atexit, asyncio's default_exception_handler."""

_LINES_BEFORE: Final = 2
"""asyncio writes one line between that and the traceback."""

_ABORTED: Final = re.compile(r"^terminate called after throwing an instance of '([^']+)'")
_WHAT: Final = re.compile(r"^\s*what\(\): +(.*)")
"""libstdc++, libsupc++/vterminate.cc."""

_BY_SIGNAL: Final = re.compile(r"\bSignal (\d+) \(SIG\w+\) received by PID \d+")
_ROOT_CAUSE: Final = "Root Cause (first observed failure):"
"""Both of torchrun's account: torch/distributed/elastic/multiprocessing/errors/__init__.py."""

_OF_TORCHRUN: Final = frozenset({str(int(signal.SIGTERM)), str(int(signal.SIGKILL))})
"""With these torchrun itself ends the other ranks."""

_MORE_LINES: Final = 12
"""So many lines after its first belong to an error's message: torch_npu adds the codes of CANN there."""

_LAUNCHERS_OWN: Final = frozenset({"ChildFailedError", "ProcessExitedException", "ProcessRaisedException"})
"""torch.distributed.elastic and torch.multiprocessing: a child has failed, which is no cause."""

_CHANGES: Final = (
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "ADDRESS"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "ID"),
    (re.compile(r"(?:/var)?/tmp/[^\s'\",:;)\]]+|/dev/shm/[^\s'\",:;)\]]+"), "TEMPORARY"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[-T ]\d\d:\d\d:\d\d(?:[.,]\d+)*(?:Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b"), "TIME"),
    (re.compile(r"\b(pid|process|thread|tid)\b([ =:]*)\d+", re.IGNORECASE), r"\1\2N"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:[KMGT]i?B|bytes|ms|milliseconds|seconds|s)\b"), "AMOUNT"),
    (re.compile(r"\b(\d{1,3}(?:\.\d{1,3}){3}):\d+\b"), r"\1:PORT"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """An error that somebody raised. The first line of ``message`` is its own text. ``earlier`` are the
    others of its chain: it was raised from them, or while they were handled.
    """

    error_type: str
    message: str
    earlier: tuple["Raised", ...] = ()


def known(failure: RunFailure | None) -> KnownFailure:
    if failure is None:
        return KnownFailure()
    errors = _errors(failure)
    kinds = [_kind(failure, error) for error in errors]
    chosen = next(
        (place for place in reversed(range(len(errors))) if kinds[place] is not FailureKind.TRANSIENT),
        len(errors) - 1,
    )
    if chosen < 0:
        return KnownFailure(kind=_kind(failure, None), line=_first_line(failure.message))
    error = errors[chosen]
    return KnownFailure(kind=kinds[chosen], signature=signature_of(error), line=_text(error)[:_MAX_LINE])


def signature_of(error: Raised) -> str:
    """Without what is another at each run: addresses, ids of processes, times, temporary files, amounts."""
    text = _text(error)
    for pattern, instead in _CHANGES:
        text = pattern.sub(instead, text)
    return text.strip()[:_MAX_LINE]


def _errors(failure: RunFailure) -> list[Raised]:
    """From the first. What torch has written is of the rank that failed first, and goes before all else."""
    by_torch = Raised(error_type=failure.error_type, message=failure.message)
    if _text(by_torch) and _name(by_torch) not in _LAUNCHERS_OWN and not _BY_SIGNAL.search(failure.message):
        return [by_torch]
    lines = [_split(line) for line in failure.tail.splitlines()]
    aborts = list(_aborts(lines))
    if failure.signal is not None or _ended_by_signal(failure.message) or _ended_by_signal(failure.tail):
        return aborts
    last = {prefix: error for prefix, error in _raised(lines) if _name(error) not in _LAUNCHERS_OWN}
    uncaught = [error for prefix, error in last.items() if _UNCAUGHT.search(prefix)]
    return [*aborts, *(uncaught or last.values())]


def _ended_by_signal(text: str) -> bool:
    """Whether a rank was: then no exception has ended it, and what tracebacks there are were handled."""
    others, mark, root = text.rpartition(_ROOT_CAUSE)
    if not mark:
        return _BY_SIGNAL.search(text) is not None
    return bool(_BY_SIGNAL.search(root)) or not _OF_TORCHRUN.issuperset(_BY_SIGNAL.findall(others))


def _raised(lines: Sequence[tuple[str, str]]) -> list[tuple[str, Raised]]:
    """The ends of tracebacks, each with its prefix. Ranks write at once: only lines of one prefix belong
    together.
    """
    of_one: dict[str, list[tuple[int, str]]] = {}
    for place, (prefix, text) in enumerate(lines):
        of_one.setdefault(prefix, []).append((place, text))
    found = [
        (place, prefix, error)
        for prefix, lines_of_one in of_one.items()
        for place, error in _chains(lines_of_one)
    ]
    return [(prefix, error) for _, prefix, error in sorted(found, key=lambda each: each[0])]


def _chains(lines_of_one: Sequence[tuple[int, str]]) -> list[tuple[int, Raised]]:
    """The error at the end of each chain of tracebacks, with its place."""
    found: list[tuple[int, Raised]] = []
    chain: tuple[Raised, ...] = ()
    is_within = is_linked = is_the_end = False
    for at, (place, text) in enumerate(lines_of_one):
        if text.startswith(_TRACEBACK):
            is_within = True
            if not is_linked:
                chain = ()
                before = lines_of_one[max(0, at - _LINES_BEFORE) : at]
                is_the_end = not any(_NOT_THE_END.match(each) for _, each in before)
        elif text in _LINKS and chain:
            is_linked = True
        elif is_within and not _INNER.match(text):
            is_within = False
            if (error := _error(text, lines_of_one[at + 1 : at + 1 + _MORE_LINES])) is None:
                continue
            if is_linked and is_the_end:
                found.pop()
            if is_the_end:
                found.append((place, replace(error, earlier=chain)))
            chain, is_linked = (*chain, error), False
    return found


def _error(text: str, behind: Sequence[tuple[int, str]]) -> Raised | None:
    found = _ERROR_LINE.match(text)
    if found is None:
        return None
    more = [each for _, each in behind]
    end = next((at for at, each in enumerate(more) if each.startswith(_TRACEBACK)), len(more))
    return Raised(error_type=found[1], message="\n".join((found[2] or "", *more[:end])))


def _aborts(lines: Sequence[tuple[str, str]]) -> Iterator[Raised]:
    """Uncaught exceptions of C++."""
    for (_, text), (_, next_text) in pairwise(lines):
        found, what = _ABORTED.match(text), _WHAT.match(next_text)
        if found is not None and what is not None:
            yield Raised(error_type=found[1].replace("::", "."), message=what[1])


def _split(line: str) -> tuple[str, str]:
    found = _PREFIX.match(line)
    end = found.end() if found else 0
    return line[:end].strip(), line[end:]


def _kind(failure: RunFailure, error: Raised | None) -> FailureKind:
    """An error that comes of one that may pass may pass, too, whatever its own type."""
    everything = f"{failure.error_type}: {failure.message}\n{failure.tail}"
    earlier = () if error is None else error.earlier
    own, *others = (_kind_of_one(failure, each, everything) for each in (error, *earlier))
    return FailureKind.TRANSIENT if own is FailureKind.USER and FailureKind.TRANSIENT in others else own


def _kind_of_one(failure: RunFailure, error: Raised | None, everything: str) -> FailureKind:
    return next((row.kind for row in ROWS if _fits(row, failure, error, everything)), FailureKind.UNKNOWN)


def _fits(row: ExitRow, failure: RunFailure, error: Raised | None, everything: str) -> bool:
    if row.status is not None and row.status != failure.status:
        return False
    if row.signal is not None and row.signal != failure.signal:
        return False
    if row.error_types and (error is None or _name(error) not in row.error_types):
        return False
    if row.text is not None:
        text = everything if row.anywhere else "" if error is None else f"{error.error_type}: {error.message}"
        return row.text.search(text) is not None
    return True


def _name(error: Raised) -> str:
    return error.error_type.rpartition(".")[2]


def _text(error: Raised) -> str:
    line = _first_line(error.message)
    return f"{error.error_type}: {line}" if error.error_type and line else error.error_type or line


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
