"""How long the bridge waits before it tries again. Pure.

The first time is soon, for a conflict is over at once; later ones double. What the API server asks for by
Retry-After is kept at least (RFC 9110, section 10.2.3; the API server sends it with 429 and 503).
"""

from dataclasses import dataclass
from typing import Final

FIRST_PAUSE_NS: Final = 100_000_000
LONGEST_PAUSE_NS: Final = 60_000_000_000
LONGEST_RETRY_AFTER_S: Final = 600

_SECOND_NS: Final = 1_000_000_000
_MOST_DOUBLINGS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """``failures`` in a row. Nothing is tried before ``not_before_ns``."""

    failures: int
    not_before_ns: int
    words: str


def trouble_after(
    before: Trouble | None, words: str, retry_after_s: int, jitter: float, now_ns: int
) -> Trouble:
    """``jitter`` from 0 to 1 makes the pause up to half as long again."""
    failures = 1 if before is None else before.failures + 1
    pause_ns = min(FIRST_PAUSE_NS << min(failures - 1, _MOST_DOUBLINGS), LONGEST_PAUSE_NS)
    asked_ns = min(retry_after_s, LONGEST_RETRY_AFTER_S) * _SECOND_NS
    spread_ns = int(pause_ns * jitter / 2)
    return Trouble(failures=failures, not_before_ns=now_ns + max(pause_ns, asked_ns) + spread_ns, words=words)
