"""A problem in a file, in a form that a person can act on: file, line, key, reason, and what is right."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

PROBLEMS_KEPT = 1000

Place = TypeVar("Place")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong. ``line`` counts from 1, None where none can be named; ``key`` "" is the whole file."""

    file: str
    line: int | None
    key: str
    reason: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.key}: {self.reason}" if self.key else f"{place}: {self.reason}"


class Problems:
    """Gathers problems so that all are reported at once; past ``PROBLEMS_KEPT`` it only counts them."""

    def __init__(self) -> None:
        self._kept: list[Problem] = []
        self._more = 0

    def add(self, problem: Problem) -> None:
        if len(self._kept) < PROBLEMS_KEPT:
            self._kept.append(problem)
        else:
            self._more += 1

    def of(self, problem: Callable[[Place, str], Problem]) -> Callable[[Place, str], None]:
        """Adds what ``problem`` makes of a place and a reason."""
        return lambda place, reason: self.add(problem(place, reason))

    def __bool__(self) -> bool:
        return bool(self._kept)

    def found(self) -> tuple[Problem, ...]:
        """Every problem kept, and one more that counts those that were not."""
        if not self._more:
            return tuple(self._kept)
        last = self._kept[-1].file
        return (*self._kept, Problem(file=last, line=None, key="", reason=f"and {self._more} more problems"))
