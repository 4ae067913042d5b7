"""What a worker's signal is to the core: the same where it is heard and where a log is replayed. Pure."""

from collections.abc import Callable

from nodeagent import wire
from nodeagent.core.model import Signal


def as_input(source: str, reported: wire.Signal, rule_ns: Callable[[int], int]) -> Signal:
    """``rule_ns`` turns the worker's stamps into rule time."""
    return Signal(
        source=source,
        device=reported.device,
        code=reported.code,
        assertion=reported.assertion,
        severity=reported.severity,
        count=reported.count,
        first_ns=rule_ns(min(reported.first_ns, reported.last_ns)),
        last_ns=rule_ns(reported.last_ns),
        evidence=reported.evidence,
        backdated=reported.backdated,
        trusted=reported.trusted,
    )
