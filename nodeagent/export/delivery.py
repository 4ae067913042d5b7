"""Sends records until the receiver has taken each of them, in order. Nothing is skipped without a trace.

A record that the receiver rejects holds up all that follow it, and is reported, unless there is a file of
rejected records: then it goes there. It keeps no queue: while it waits, nothing more is read from the daemon.
"""

import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from nodeagent.client import Position
from nodeagent.export.records import ExportRecord
from nodeagent.export.rejected import RejectedRecords
from nodeagent.export.retries import SendOutcome, SendResult, pause_s

_log = logging.getLogger(__name__)

_REPORTED_ATTEMPT: Final = 4
"""With the pauses before it, after half a second."""

_WHAT_TO_DO: Final = {
    SendOutcome.FAILED: "trying again",
    SendOutcome.MISCONFIGURED: "trying again, but something has to be changed first",
    SendOutcome.REJECTED: "nothing after it is exported until the receiver takes it;"
    " --rejected FILE puts such events aside",
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
        self._reported: set[str] = set()

    def deliver(self, records: Sequence[ExportRecord]) -> Iterator[Position]:
        """How far the receiver has come, after each group that was taken or put aside."""
        most = self._destination.most
        for first in range(0, len(records), most):
            group = records[first : first + most]
            self._deliver_together(group)
            yield group[-1].position

    def _deliver_together(self, records: Sequence[ExportRecord]) -> None:
        attempt = 0
        while (result := self._destination.send(records)).outcome is not SendOutcome.TAKEN:
            if result.outcome is SendOutcome.REJECTED and len(records) > 1:
                self._deliver_halves(records)
                return
            if result.outcome is SendOutcome.REJECTED and self._is_put_aside(records[0], result):
                return
            attempt += 1
            self._note(records, result, attempt)
            self._sleep(pause_s(attempt, result, random.random()))
        self.delivered += len(records)
        self._note_recovery(attempt + 1)

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

    def _note(self, records: Sequence[ExportRecord], result: SendResult, attempt: int) -> None:
        """Each reason is reported once, and a failure that the next attempts mend is not."""
        self.trouble = result.reason
        is_brief = result.outcome is SendOutcome.FAILED and attempt < _REPORTED_ATTEMPT
        if is_brief or result.reason in self._reported:
            return
        self._reported.add(result.reason)
        _log.log(
            logging.WARNING if result.outcome is SendOutcome.FAILED else logging.ERROR,
            "event %s is not taken: %s; %s",
            records[0].id,
            result.reason,
            _WHAT_TO_DO[result.outcome],
        )

    def _note_recovery(self, attempts: int) -> None:
        self.trouble = ""
        if self._reported:
            self._reported.clear()
            _log.info("the receiver takes events again, after %d attempts", attempts)
