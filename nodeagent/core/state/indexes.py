"""Which faults are where, by their codes: all the indexes over cells that depend on the catalog.

A new catalog compares codes in other ways and has other rules, so it needs new indexes. Nothing here judges.
"""

from collections.abc import Hashable
from typing import TypeVar

from nodeagent.core.catalog.catalog import CommonCauseRule
from nodeagent.core.catalog.lookup import Lookup, Side, side
from nodeagent.core.model import Affects, Condition, Promotion, Trace
from nodeagent.core.state.cells import Key

G = TypeVar("G", bound=Hashable)


class Groups(dict[G, dict[Key, None]]):
    """``get(group, ())`` are its keys. A dictionary, because it is asked many times for each input."""

    def add(self, group: G, key: Key) -> None:
        self.setdefault(group, {})[key] = None

    def remove(self, group: G, key: Key) -> None:
        """Raises KeyError where it is not in the group."""
        keys = self[group]
        del keys[key]
        if not keys:
            del self[group]


Coded = Condition | Promotion | Trace
_Place = tuple[str, str, bool, str]
"""The device, the code as it is compared, whether the condition was injected, and whose report it is."""


class Indexes:
    """``open``: the condition at each place; where two would be, the one that came first. ``reported``: the
    conditions of each report.

    ``paired``: the conditions and traces on each side of each relation rule. ``shared``: the conditions that
    each rule of common causes counts. ``promoted``: the promotions by device and code. ``reaching``: those of
    faults that affect more than their own device, and what they affect.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self.open: dict[_Place, Key] = {}
        self.reported = Groups[str]()
        self.paired = Groups[Side]()
        self.shared = Groups[str]()
        self.promoted = Groups[tuple[str, str]]()
        self.reaching: dict[Key, Affects] = {}

    def place(self, condition: Condition) -> _Place:
        report = "" if condition.origin.report is None else condition.origin.report.key
        return condition.device_id, self._lookup.facts(condition.code).key, condition.origin.injected, report

    def add(self, key: Key, cell: Coded) -> None:
        if isinstance(cell, Promotion):
            self.promoted.add(self._code_of(cell), key)
            row = self._lookup.facts(cell.code).row
            if row is not None and row.affects is not Affects.SELF:
                self.reaching[key] = row.affects
            return
        if isinstance(cell, Condition):
            self.open.setdefault(self.place(cell), key)
            if cell.origin.report is not None:
                self.reported.add(cell.origin.report.name, key)
            for rule in self._shared_by(cell):
                self.shared.add(rule.id, key)
        for each in self._sides(cell):
            self.paired.add(each, key)

    def remove(self, key: Key, cell: Coded) -> None:
        if isinstance(cell, Promotion):
            self.promoted.remove(self._code_of(cell), key)
            self.reaching.pop(key, None)
            return
        if isinstance(cell, Condition):
            if self.open.get(self.place(cell)) == key:
                del self.open[self.place(cell)]
            if cell.origin.report is not None:
                self.reported.remove(cell.origin.report.name, key)
            for rule in self._shared_by(cell):
                self.shared.remove(rule.id, key)
        for each in self._sides(cell):
            self.paired.remove(each, key)

    def _shared_by(self, condition: Condition) -> tuple[CommonCauseRule, ...]:
        """What is injected is related to nothing."""
        return () if condition.origin.injected else self._lookup.facts(condition.code).common_causes

    def _code_of(self, promotion: Promotion) -> tuple[str, str]:
        return promotion.device_id, self._lookup.facts(promotion.code).key

    def _sides(self, cell: Condition | Trace) -> list[Side]:
        """A trace is of a fault that is over: it makes pairs, and nothing becomes of it."""
        relations = self._lookup.facts(cell.code).relations
        if relations is None or (isinstance(cell, Condition) and cell.origin.injected):
            return []
        sides = [side("with", rule, cell.device_id) for rule in relations.as_with]
        if isinstance(cell, Condition):
            rules = relations.as_code if cell.origin.report is None else relations.but_absorbed
            sides += [side("code", rule, cell.device_id) for rule in rules]
        return sides
