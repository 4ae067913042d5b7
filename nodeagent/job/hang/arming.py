"""Whether a run has shown that it is stable. Before that, nothing that is found about it acts.

By the first step that it reports, or by chips that vary for long enough. A steady job that reports no steps
never is.
"""

from nodeagent.job.hang.settings import Settings


class Arming:
    """``learns``: what is measured now is what is usual of the run."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._varying_since_s: float | None = None
        self.armed = False

    @property
    def learns(self) -> bool:
        return self.armed or self._varying_since_s is not None

    def advanced(self) -> None:
        self.armed = True

    def measured(self, began_s: float, now_s: float, *, chips_vary: bool) -> None:
        """``chips_vary``: one of the job does, each of the others is in use, and all could be read."""
        if self.armed:
            return
        is_gap = now_s - began_s > self._settings.gap_s
        if is_gap or not chips_vary:
            self._varying_since_s = None
        elif self._varying_since_s is None:
            self._varying_since_s = began_s
        elif now_s - self._varying_since_s >= self._settings.arming_s:
            self.armed = True
