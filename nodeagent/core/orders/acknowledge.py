"""What the agent reports once, and only a person ends: all of it stands in one condition until that is seen.

Each has an event, and its words stand beside those reported before: ``reason``, ``reason.2``.
What others report is left as it is: lines of the kernel come in any number, and each has words of its own.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.model import Assertion, Condition, EventKind, Signal
from nodeagent.core.state.state import State
from nodeagent.core.verdicts.emit import emit

MAX_REASONS: Final = 16
"""Beyond it the newest takes the place of the last: each has its event."""

_AGENT: Final = "agent"
_ACKNOWLEDGED: Final = ClearOn(operator=True)


def repeated(state: State, condition: Condition, signal: Signal, facts: Facts) -> Condition:
    """The open condition with what the signal adds to it; an event where that is anything."""
    is_once = signal.source == _AGENT and signal.assertion is Assertion.ONCE and not signal.injected
    if not is_once or facts.clear_on != _ACKNOWLEDGED:
        return condition
    evidence = _beside(condition.evidence, signal.evidence)
    if evidence is condition.evidence:
        return condition
    after = replace(condition, evidence=evidence)
    state.put(after)
    device = state.device(after.device_id)
    emit(state, EventKind.NOTICE, device, about=after, why="once more, before it was acknowledged")
    return after


def _beside(known: Mapping[str, str], new: Mapping[str, str]) -> Mapping[str, str]:
    by_number: dict[int, dict[str, str]] = {}
    for key, value in known.items():
        name, number = _numbered(key)
        by_number.setdefault(number, {})[name] = value
    if not new or dict(new) in by_number.values():
        return known
    number = min(max(by_number, default=0) + 1, MAX_REASONS)
    kept = {key: value for key, value in known.items() if _numbered(key)[1] != number}
    return kept | {f"{name}.{number}" if number > 1 else name: value for name, value in new.items()}


def _numbered(key: str) -> tuple[str, int]:
    name, _, number = key.rpartition(".")
    return (name, int(number)) if name and number.isdecimal() else (key, 1)
