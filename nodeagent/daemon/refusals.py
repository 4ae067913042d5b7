"""What was refused of configuration and tables, as conditions of the node until a good reload or start.

A line of a log is gone by the time somebody looks. It decides nothing: what is refused others say.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from nodeagent.core.model import AGENT, NODE, Assertion, Signal, View

CONFIGURATION: Final = "configuration_rejected"
TABLES: Final = "tables_rejected"

_SOURCE: Final = AGENT
_REASON: Final = "reason"
_REASON_LENGTH: Final = 2000


def standing(view: View, refused: Mapping[str, str]) -> tuple[Signal, ...]:
    """The signals that make the open conditions say why each code is refused; "" where it is in force."""
    return tuple(signal for code, reason in refused.items() for signal in _signals(view, code, reason))


def _signals(view: View, code: str, reason: str) -> Iterator[Signal]:
    reason = "; ".join(reason.splitlines())[:_REASON_LENGTH]
    raised = [each for each in view.conditions if (each.source, each.code) == (_SOURCE, code)]
    if reason and any(each.evidence.get(_REASON) == reason for each in raised):
        return
    if raised:
        yield Signal(source=_SOURCE, device=NODE, code=code, assertion=Assertion.RECOVER)
    if reason:
        yield Signal(
            source=_SOURCE, device=NODE, code=code, assertion=Assertion.OCCUR, evidence={_REASON: reason}
        )
