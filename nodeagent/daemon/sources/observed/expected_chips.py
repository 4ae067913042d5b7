"""How many chips a source ought to list, by the configuration, and what is reported of another number. Pure.

Chips are counted, not judged: one that is listed and does not answer, or is lost to its driver, has a fault
of its own. Chips that start are listed late: how long there may be too few of them is the table's to say. It
is reported as the source's own, so that no time-out runs while the source is lost.
"""

from collections.abc import Collection, Iterable
from typing import Final

from nodeagent.core.model import NODE, Assertion, Kind, Signal
from nodeagent.wire import Device

FEWER: Final = "fewer_chips_than_expected"
MORE: Final = "more_chips_than_expected"
"""Both are codes of the node, with the name of the source behind them."""

MAX_NAMED: Final = 16


class ExpectedChips:
    """How many chips one source ought to have. ``number`` 0: any; None: none, and nothing is reported."""

    def __init__(self, source: str, number: int | None) -> None:
        self.number = number
        self.listed = 0
        self._source = source
        self._reported: dict[str, str] = {}

    def counted(self, devices: Iterable[Device], missing: Collection[str] = ()) -> list[Signal]:
        """What follows from a whole list. ``missing`` are the slots that are known to lack a chip."""
        self.listed = sum(device.kind is Kind.CHIP for device in devices)
        if not self.number or self.listed == self.number:
            return self.never_mind()
        reason = f"{self.listed} listed, drivers.{self._source}.expected_chips is {self.number}"
        if self.listed > self.number:
            return [*self._report(FEWER, ""), *self._report(MORE, reason)]
        if missing:
            reason += f"; missing: {', '.join(sorted(missing)[:MAX_NAMED])}"
        return [*self._report(MORE, ""), *self._report(FEWER, reason)]

    def never_mind(self) -> list[Signal]:
        """There are neither more nor fewer than expected, or that does not matter now."""
        return [*self._report(FEWER, ""), *self._report(MORE, "")]

    def _report(self, code: str, reason: str) -> list[Signal]:
        """Where it is news. The first time also that all is well: an earlier life may have said otherwise."""
        if self.number is None or self._reported.get(code) == reason:
            return []
        self._reported[code] = reason
        return [
            Signal(
                source=self._source,
                device=NODE,
                code=f"{code}.{self._source}",
                assertion=Assertion.OCCUR if reason else Assertion.RECOVER,
                evidence={"reason": reason} if reason else {},
            )
        ]
