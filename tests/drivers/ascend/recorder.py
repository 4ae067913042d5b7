"""A driver's way out, kept: what it sent, in order, for tests that call the driver themselves."""

import threading
import time
from collections.abc import Callable

from nodeagent.core.model import NODE
from nodeagent.wire import Batch, Following, Signal

PATIENCE_S = 60.0


class Recorder:
    """Implements ``drivers.api.Emit``."""

    def __init__(self) -> None:
        self.reports: list[Following] = []
        self._arrived = threading.Condition()

    def __call__(self, report: Following) -> None:
        with self._arrived:
            self.reports.append(report)
            self._arrived.notify_all()

    def enqueue(self, report: Batch) -> None:
        self(report)

    @property
    def signals(self) -> list[Signal]:
        """Of the devices; what a driver says of the source, it says of the node."""
        reported = [
            signal for report in self.reports if isinstance(report, Batch) for signal in report.signals
        ]
        return [signal for signal in reported if signal.device != NODE]

    def until(self, found: Callable[[], bool]) -> None:
        """Wait until the callback has brought it; looked at with every report and now and then."""
        until_s = time.monotonic() + PATIENCE_S
        with self._arrived:
            while not found():
                assert time.monotonic() < until_s, self.reports
                self._arrived.wait(0.02)
