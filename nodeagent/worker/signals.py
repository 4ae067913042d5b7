"""What a worker's signal is to the core: the same where it is heard and where a log is replayed. Pure."""

from collections.abc import Callable

from nodeagent import wire
from nodeagent.core.model import Signal


def as_input(source: str, said: wire.Signal, rule_ns: Callable[[int], int]) -> Signal:
    """``rule_ns`` turns the worker's stamps into rule time."""
    return Signal(
        source=source,
        device=said.device,
        code=said.code,
        assertion=said.assertion,
        severity=said.severity,
        count=said.count,
        first_ns=rule_ns(min(said.first_ns, said.last_ns)),
        last_ns=rule_ns(said.last_ns),
        evidence=said.evidence,
        backdated=said.backdated,
        trusted=said.trusted,
    )
