"""The answer to a question that is asked seldom: it holds until then. It runs no timer."""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cached(Generic[T]):
    """``ask`` gives None where there is no answer. ``now_s`` is a clock that does not step."""

    def __init__(
        self, ask: Callable[[], T | None], every_s: float, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._every_s = every_s
        self._now_s = now_s
        self._due_s = 0.0
        self._answer: T | None = None

    def get(self) -> T | None:
        """The last answer, None if there never was one. What was not answered is asked again at once."""
        if self._now_s() >= self._due_s and (answer := self._ask()) is not None:
            self._answer, self._due_s = answer, self._now_s() + self._every_s
        return self._answer
