"""Counts a reset before it is done: within the limits of the configuration, and never two at once."""

from typing import Final

from msgspec.structs import replace

from nodeagent.drivers.shared.resetting import ResetRefused
from nodeagent.reset_unit import limits
from nodeagent.reset_unit.exchange import record, trusted
from nodeagent.reset_unit.exchange.files import Locked
from nodeagent.reset_unit.exchange.record import Entry, Record
from nodeagent.reset_unit.exchange.request import Request
from nodeagent.reset_unit.plan import Plan

COUNT_WAIT_S: Final = 2.0


class ResetCount:
    """The count of one attempt.

    ``prepare`` and ``begin`` raise ``ResetRefused`` where it may not be done now.
    """

    def __init__(self, request: Request, plan: Plan) -> None:
        self._request = request
        self._plan = plan
        self._entry: Entry | None = None
        self.record = Record(plan.config.record_dir)

    def prepare(self) -> None:
        """See to it that it can be counted, and may be now."""
        try:
            self.record.make()
            trusted.check(self.record.folder)
            self._check(record.now())
        except (OSError, ValueError, trusted.Untrusted) as error:
            raise ResetRefused(f"the record of resets cannot be used: {error}") from error

    def begin(self) -> None:
        """Count it, as the last thing before it is done."""
        request = self._request
        try:
            with self.record.counting(COUNT_WAIT_S):
                begun = record.now()
                self._check(begun)
                self.record.forget_old(begun)
                self._entry = Entry(
                    action=request.action,
                    attempt=request.attempt,
                    vendor=request.vendor,
                    devices=self._plan.devices,
                    begun=begun,
                )
                self.record.put(self._entry)
        except Locked as error:
            raise ResetRefused("another process keeps the record of resets locked") from error
        except (OSError, ValueError) as error:
            raise ResetRefused(f"it cannot be counted: {error}") from error

    def end(self, outcome: str) -> None:
        """From now on it counts; ``refused``: it does not count. Raises ``OSError`` and ``ValueError``."""
        if self._entry is not None and outcome == "refused":
            self.record.drop(self._entry)
        elif self._entry is not None:
            self.record.put(replace(self._entry, ended=record.now(), outcome=outcome))

    def _check(self, present: record.Moment) -> None:
        past = record.resets_of_late(self.record.folder, present=present)
        if why := limits.exceeded(self._plan.devices, past, self._plan.reset):
            raise ResetRefused(why)
