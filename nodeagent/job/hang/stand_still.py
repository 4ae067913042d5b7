"""How long a run has stood still: a stretch that begins in the past, where its first quiet sample was.

Time of which nothing is known does not count. Too much of it ends the stretch: then it may have worked.
"""

from collections import deque
from typing import Final, NamedTuple

from nodeagent.job.hang.settings import Settings

_ROUNDING_S: Final = 1e-6


class _Span(NamedTuple):
    began_s: float
    ended_s: float
    is_known: bool


class History:
    """The newest samples, as far back as a stretch can begin: what of them was known."""

    def __init__(self, settings: Settings) -> None:
        self._spans = deque[_Span](maxlen=2 * settings.samples_of_window + 6)

    def add(self, began_s: float, ended_s: float, *, is_known: bool) -> None:
        self._spans.append(_Span(began_s, ended_s, is_known))

    def since(self, since_s: float) -> tuple[float, float]:
        """Seconds that were known, and that were not."""
        known = unknown = 0.0
        for span in self._spans:
            if span.ended_s <= since_s:
                continue
            seconds = span.ended_s - max(span.began_s, since_s)
            known, unknown = (known + seconds, unknown) if span.is_known else (known, unknown + seconds)
        return known, unknown


class Stretch:
    """``still_s`` is 0 while the run is not still."""

    def __init__(self, settings: Settings, history: History) -> None:
        self._settings = settings
        self._history = history
        self._unknown_s = 0.0
        self._not_before_s = float("-inf")
        self.is_begun = False
        self.still_s = 0.0

    def counted(self, since_s: float | None, now_s: float, seconds: float, *, is_known: bool) -> bool:
        """``since_s``: since when all is quiet, None where it is not. True: the stretch is dropped."""
        if not is_known:
            return self.unknown(now_s, seconds)
        if since_s is None:
            self.broken()
        else:
            self.quiet(since_s, now_s, seconds)
        return False

    def quiet(self, since_s: float, now_s: float, seconds: float) -> None:
        """All was quiet for these seconds, and since then."""
        if self.is_begun:
            self.still_s += seconds
            return
        self.is_begun = True
        self.still_s, self._unknown_s = self._history.since(max(since_s, self._not_before_s))
        if self._unknown_s >= self._settings.most_unknown_s - _ROUNDING_S:
            self.still_s, self._unknown_s, self._not_before_s = 0.0, 0.0, now_s

    def unknown(self, now_s: float, seconds: float) -> bool:
        """Nothing is known of these seconds. True: the stretch is dropped for it."""
        if not self.is_begun:
            return False
        self._unknown_s += seconds
        if self._unknown_s < self._settings.most_unknown_s - _ROUNDING_S:
            return False
        self.broken()
        self._not_before_s = now_s
        return True

    def broken(self) -> None:
        self.is_begun, self.still_s, self._unknown_s = False, 0.0, 0.0

    def has_lasted(self, limit_s: float) -> bool:
        return self.still_s >= limit_s - _ROUNDING_S
