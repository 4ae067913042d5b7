"""What the driver asks of each of its checks. Values only: what a finding means is the tables' to say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nodeagent.wire import Signal

Finding = tuple[str, str]
"""The device, by its name or PCI address, and the code that is active on it."""

Evidence = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look found. ``active``: what is wrong now. ``occurred``: what was, since the look before.
    ``readings``: telemetry of the source, by metric name in base units.
    """

    active: Mapping[Finding, Evidence] = field(default_factory=dict)
    occurred: Sequence[Signal] = ()
    readings: Mapping[str, float] = field(default_factory=dict)


class Check(Protocol):
    def is_here(self) -> bool:
        """Whether the node has anything that it looks at. Raises ``OSError``."""

    def look(self) -> Look:
        """Called at each poll. Raises ``OSError``: what the look before found stays as it was."""
