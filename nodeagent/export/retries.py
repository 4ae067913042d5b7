"""When records are sent again, and when sending them again cannot help. Values in, values out; no I/O.

Which status of HTTP means what follows RFC 9110, OTLP (its section on failures of OTLP/HTTP) and the HTTP
webhooks of CloudEvents: a receiver that is overloaded or broken is tried again; a request that it rejects for
what it holds is rejected each time. What neither has is the destination's: wrong address, missing credential.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import Final

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 30.0
LONGEST_RETRY_AFTER_S: Final = 3600.0


class SendOutcome(Enum):
    """What became of records that were sent."""

    TAKEN = auto()
    """The receiver has them."""

    FAILED = auto()
    """The receiver does not answer, or is overloaded: it may take them later."""

    MISCONFIGURED = auto()
    """The receiver takes nothing from us until a person changes something, there or here."""

    REJECTED = auto()
    """The receiver answers, and does not take these records: one of them is wrong to it, or they are too
    many.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """``reason`` is a text for people; ``retry_after_s`` is when the receiver wants to be asked again."""

    outcome: SendOutcome
    reason: str = ""
    retry_after_s: float | None = None


TAKEN: Final = SendResult(outcome=SendOutcome.TAKEN)

_OUTCOMES: Final[Mapping[int, SendOutcome]] = {
    400: SendOutcome.REJECTED,
    408: SendOutcome.FAILED,
    413: SendOutcome.REJECTED,
    422: SendOutcome.REJECTED,
    425: SendOutcome.FAILED,
    429: SendOutcome.FAILED,
    501: SendOutcome.MISCONFIGURED,
    505: SendOutcome.MISCONFIGURED,
}
"""Statuses that differ from their class. 429 is Too Many Requests, 425 Too Early, 413 Content Too Large."""

_OF_CLASS: Final[Mapping[int, SendOutcome]] = {2: SendOutcome.TAKEN, 5: SendOutcome.FAILED}


def http_result(status: int, reason: str, retry_after: str | None, now_s: float) -> SendResult:
    """``retry_after`` is the header of that name, ``now_s`` unix time.

    A redirection is not followed: it would send credentials to an address that is not configured.
    """
    outcome = _OUTCOMES.get(status, _OF_CLASS.get(status // 100, SendOutcome.MISCONFIGURED))
    return SendResult(
        outcome=outcome,
        reason=f"{status} {reason}".rstrip(),
        retry_after_s=_retry_after_s(retry_after, now_s),
    )


def _retry_after_s(text: str | None, now_s: float) -> float | None:
    """Seconds, or a date (RFC 9110, section 10.2.3); None for neither."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return min(float(text), LONGEST_RETRY_AFTER_S)
    try:
        wait_s = parsedate_to_datetime(text).timestamp() - now_s
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(0.0, wait_s), LONGEST_RETRY_AFTER_S)


def pause_s(attempt: int, result: SendResult, jitter: float) -> float:
    """How long to wait after this attempt, the first is 1. ``jitter`` is random, from 0 to 1.

    Twice as long each time, and at once the longest where only a person can help. It is never shorter than
    the receiver asks for.
    """
    doublings = min(attempt - 1, math.ceil(math.log2(LONGEST_PAUSE_S / FIRST_PAUSE_S)))
    whole_s = min(math.ldexp(FIRST_PAUSE_S, doublings), LONGEST_PAUSE_S)
    if result.outcome is not SendOutcome.FAILED:
        whole_s = LONGEST_PAUSE_S
    return max(result.retry_after_s or 0.0, whole_s * (0.5 + jitter / 2))
