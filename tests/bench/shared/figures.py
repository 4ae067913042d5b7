"""A figure: what was measured, beside its budget and beside a floor or peer measured on the same machine.

Ratios are printed, never asserted: a machine that does other work besides makes every time longer.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


class CannotRun(Exception):
    """What this machine lacks for a benchmark, and what would bring it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """``budget`` and ``peer`` are in the same unit. A rate must reach its budget, all else stay below it."""

    name: str
    value: float
    unit: str
    budget: float | None = None
    peer: float | None = None
    peer_name: str = ""
    note: str = ""

    @property
    def of_budget(self) -> float | None:
        """At most 1 where the budget is kept."""
        if self.budget is None or not self.budget:
            return None
        if self.unit.endswith("/s"):
            return self.budget / self.value if self.value else float("inf")
        return self.value / self.budget

    @property
    def of_peer(self) -> float | None:
        return self.value / self.peer if self.peer else None

    def as_json(self, benchmark: str) -> dict[str, Any]:
        return {
            "benchmark": benchmark,
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "budget": self.budget,
            "of_budget": self.of_budget,
            "peer": self.peer,
            "peer_name": self.peer_name,
            "of_peer": self.of_peer,
            "note": self.note,
        }

    def as_line(self) -> str:
        line = f"  {self.name:<50} {_number(self.value):>9} {self.unit:<9}"
        if self.budget is not None:
            line += f" budget {_number(self.budget):>7}"
            line += f" {self.of_budget:5.2f}x" if self.of_budget is not None else ""
        if self.peer is not None:
            line += f"  {self.peer_name} {_number(self.peer)} {self.of_peer or 0:.2f}x"
        return f"{line}  {self.note}".rstrip()


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that so many percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def spread(values: Sequence[float]) -> str:
    return f"({_number(min(values))} to {_number(max(values))}, {len(values)} rounds)"


def _number(value: float) -> str:
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
