"""How two catalogs differ: in levels, in what else a row decides, in rules. It judges nothing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from nodeagent.core.catalog.catalog import Catalog, Row
from nodeagent.core.model import Level
from nodeagent.tables.export import row_values, rule_values
from nodeagent.tables.rule_kinds import RULE_SECTIONS

Values = Mapping[str, object]
Change = tuple[object, object]
"""Before and after; None where the key was not set."""

_PROSE = ("name", "description", "action", "level_source", "level_reason")


@dataclass(frozen=True, slots=True)
class RowChange:
    """``before`` or ``after`` is None for a code that only the other catalog has.

    ``fields`` are the keys other than the level that are compared and differ, of a code that both have.
    """

    code: str
    name: str
    before: Level | None
    after: Level | None
    fields: Mapping[str, Change]


@dataclass(frozen=True, slots=True)
class RuleChange:
    """``before`` or ``after`` is empty for a rule that only the other catalog has."""

    kind: str
    id: str
    before: Values
    after: Values


@dataclass(frozen=True, slots=True)
class Difference:
    rows: tuple[RowChange, ...]
    rules: tuple[RuleChange, ...]


def compare(before: Catalog, after: Catalog, *, texts: bool = False) -> Difference:
    """Rows in the order of their codes, rules by kind and then by id. ``texts``: those for people too."""
    keys = sorted(before.rows.keys() | after.rows.keys())
    left_out = ("level",) if texts else ("level", *_PROSE)
    rows = (_row_change(before.rows.get(key), after.rows.get(key), left_out) for key in keys)
    old, new = _rules(before), _rules(after)
    named = sorted(old.keys() | new.keys(), key=lambda key: (list(RULE_SECTIONS).index(key[0]), key[1]))
    return Difference(
        rows=tuple(change for change in rows if change is not None),
        rules=tuple(
            RuleChange(*key, old.get(key, {}), new.get(key, {}))
            for key in named
            if old.get(key) != new.get(key)
        ),
    )


def changed_fields(before: Values, after: Values) -> dict[str, Change]:
    """The keys that differ, in the order of ``before`` and then of ``after``."""
    keys = [*before, *(key for key in after if key not in before)]
    return {
        key: (before.get(key), after.get(key))
        for key in keys
        if _plain(before.get(key)) != _plain(after.get(key))
    }


def _row_change(before: Row | None, after: Row | None, left_out: Collection[str]) -> RowChange | None:
    row = after or before
    if row is None:
        return None
    fields = dict[str, Change]()
    if before is not None and after is not None:
        old, new = row_values(before), row_values(after)
        fields = {key: change for key, change in changed_fields(old, new).items() if key not in left_out}
        if before.level == after.level and not fields:
            return None
    return RowChange(
        code=row.code,
        name=row.name,
        before=before.level if before is not None else None,
        after=after.level if after is not None else None,
        fields=fields,
    )


def _rules(catalog: Catalog) -> dict[tuple[str, str], Values]:
    return {
        (key, rule.id): rule_values(rule)
        for key, section in RULE_SECTIONS.items()
        for rule in getattr(catalog, section.in_catalog)
    }


def _plain(value: object) -> object:
    """Lists of codes are compared as lists, whatever holds them."""
    return list(value) if isinstance(value, tuple) else value
