"""Sends records until the receiver has taken each of them, in order. Nothing is skipped without a trace.

A record that the receiver rejects holds up all that follow it, and is reported, unless there is a file of
rejected records: then it goes there. It keeps no queue: while it waits, nothing more is read from the daemon.
"""

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from nodeagent.export.records import ExportRecord
from nodeagent.export.rejected import RejectedRecords
from nodeagent.export.retries import Outcome, SendResult, pause_s

_log = logging.getLogger(__name__)

_WHAT_TO_DO: Final = {
    Outcome.FAILED: "trying again",
    Outcome.MISCONFIGURED: "trying again, but something has to be changed first",
    Outcome.REJECTED: "nothing after it is exported until the receiver takes it; --rejected FILE puts such"
    " events aside",
}


class Destination(Protocol):
    """Where records go. ``most`` is how many it takes at once."""

    most: int

    def send(self, records: Sequence[ExportRecord]) -> SendResult:
        """One attempt, with a time limit. It raises nothing that the receiver or the network can cause."""

    def close(self) -> None: ...


class RecordDelivery:
    """``delivered`` and ``rejected`` count records; ``trouble`` is why the present one is not taken, "" while
    all is well.
    """

    def __init__(
        self,
        destination: Destination,
        rejected: RejectedRecords | None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._destination = destination
        self._rejected_records = rejected
        self._sleep = sleep
        self.delivered = 0
        self.rejected = 0
        self.trouble = ""

    def deliver(self, records: Sequence[ExportRecord]) -> None:
        """Returns once each record was taken, or put aside."""
        most = self._destination.most
        for first in range(0, len(records), most):
            self._deliver_together(records[first : first + most])

    def _deliver_together(self, records: Sequence[ExportRecord]) -> None:
        attempt = 0
        while (result := self._destination.send(records)).outcome is not Outcome.TAKEN:
            if result.outcome is Outcome.REJECTED and len(records) > 1:
                self._deliver_halves(records)
                return
            if result.outcome is Outcome.REJECTED and self._is_put_aside(records[0], result):
                return
            attempt += 1
            self._report(records, result)
            self._sleep(pause_s(attempt, result, random.random()))
        self.delivered += len(records)
        self._report_recovery(attempt)

    def _deliver_halves(self, records: Sequence[ExportRecord]) -> None:
        """Which of them the receiver rejects is not known, nor whether there are only too many."""
        half = len(records) // 2
        self._deliver_together(records[:half])
        self._deliver_together(records[half:])

    def _is_put_aside(self, record: ExportRecord, result: SendResult) -> bool:
        if self._rejected_records is None or not self._rejected_records.add(record, result.reason):
            return False
        self.rejected += 1
        _log.error("the receiver rejects event %s: %s; put aside", record.id, result.reason)
        return True

    def _report(self, records: Sequence[ExportRecord], result: SendResult) -> None:
        """Once for each new reason."""
        if result.reason != self.trouble:
            self.trouble = result.reason
            _log.log(
                logging.WARNING if result.outcome is Outcome.FAILED else logging.ERROR,
                "event %s is not taken: %s; %s",
                records[0].id,
                result.reason,
                _WHAT_TO_DO[result.outcome],
            )

    def _report_recovery(self, attempts: int) -> None:
        if self.trouble:
            self.trouble = ""
            _log.info("the receiver takes events again, after %d attempts", attempts + 1)
