"""The catalog's rows and rules, indexed by code: what the engine asks many thousand times a second.

It adds nothing to the catalog and holds no state of its own but the indexes.
"""

from nodeagent.core.catalog import Catalog, DurationRule, FrequencyRule, Row, canonical
from nodeagent.core.model import Kind


class Lookup:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.settings = catalog.settings
        self._rows: dict[str, Row | None] = {}
        self._frequency_by_id = {rule.id: rule for rule in catalog.frequency}
        self._frequency: dict[str, FrequencyRule] = {}
        self._frequency_for_all: dict[Kind, FrequencyRule] = {}
        self._duration: dict[str, DurationRule] = {}
        for rule in catalog.frequency:
            for code in rule.codes:
                if code == "*":
                    self._frequency_for_all.setdefault(rule.kind, rule)
                else:
                    self._frequency.setdefault(canonical(code), rule)
        for duration in catalog.duration:
            for code in duration.codes:
                self._duration.setdefault(canonical(code), duration)

    def row(self, code: str) -> Row | None:
        """The code's row or its family's, None if it has neither."""
        if code not in self._rows:
            if len(self._rows) > 4096:
                self._rows.clear()
            self._rows[code] = self.catalog.row(code)
        return self._rows[code]

    def frequency_rule(self, code: str, kind: Kind) -> FrequencyRule | None:
        """The first rule that names the code, as the vendor does, else the kind's rule for every code."""
        return self._frequency.get(canonical(code)) or self._frequency_for_all.get(kind)

    def frequency_by_id(self, rule_id: str) -> FrequencyRule | None:
        return self._frequency_by_id.get(rule_id)

    def duration_rule(self, code: str) -> DurationRule | None:
        return self._duration.get(canonical(code))
