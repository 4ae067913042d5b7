"""What twins ask of a catalog, answered by reading it through each time. No index of the core."""

from fnmatch import fnmatchcase
from functools import cache

from nodeagent.core.catalog import codes
from nodeagent.core.catalog.catalog import Catalog, DurationRule, FrequencyRule, Row
from nodeagent.core.model import Assertion, Kind, Signal

canonical = cache(codes.canonical)
"""The same few codes are compared at each step."""


def row_of(catalog: Catalog, code: str) -> Row | None:
    """The row of the very code; None where only a family has it, or nothing."""
    return catalog.rows.get(canonical(code))


def is_known(catalog: Catalog, code: str) -> bool:
    return row_of(catalog, code) is not None


def is_related(catalog: Catalog, code: str) -> bool:
    """Whether any relation rule names it. Asked so often that the answers are kept, by digest."""
    known = _RELATED.get((catalog.digest, code))
    if known is None:
        key = canonical(code)
        known = _RELATED[catalog.digest, code] = any(
            fnmatchcase(key, canonical(named))
            for rule in catalog.relation
            for named in (rule.code, *rule.with_codes)
        )
    return known


_RELATED: dict[tuple[str, str], bool] = {}


def duration_rule(catalog: Catalog, code: str) -> DurationRule | None:
    """The first that names it; kept like the answers above."""
    if (catalog.digest, code) not in _DURATION:
        key = canonical(code)
        found = [rule for rule in catalog.duration if key in map(canonical, rule.codes)]
        _DURATION[catalog.digest, code] = found[0] if found else None
    return _DURATION[catalog.digest, code]


_DURATION: dict[tuple[str, str], DurationRule | None] = {}


def frequency_rule(catalog: Catalog, code: str, kind: Kind) -> FrequencyRule | None:
    """The first that names the code, else the first for all codes of the kind."""
    key = canonical(code)
    named = [rule for rule in catalog.frequency if key in map(canonical, rule.codes)]
    for_all = [rule for rule in catalog.frequency if "*" in rule.codes and rule.kind is kind]
    return next(iter(named + for_all), None)


def is_counted(catalog: Catalog, code: str) -> bool:
    """Whether each occurrence counts as it comes: it has a row, no duration, and is no reading's."""
    row = row_of(catalog, code)
    readings = {rule.code for rule in catalog.threshold} | {rule.code for rule in catalog.counter}
    if (
        row is None
        or row.notice
        or canonical(code) in {canonical(one) for one in readings | {"HOT", "STORM"}}
    ):
        return False
    return duration_rule(catalog, code) is None


def counts_of(catalog: Catalog, signal: Signal) -> bool:
    """Whether the signal is an occurrence that counts as it comes."""
    real = signal.trusted and not signal.injected
    return real and signal.assertion is not Assertion.RECOVER and is_counted(catalog, signal.code)
