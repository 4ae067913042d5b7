"""From a raw code to a fault: the row's words, or the rules for codes that no row names.

It decides a level, never a verdict, and changes nothing.
"""

from dataclasses import dataclass

from nodeagent.core.catalog.lookup import Facts, Lookup
from nodeagent.core.model import PUBLIC, Affects, Condition, Kind, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A classified code. ``kind`` None: that of the device it came on."""

    name: str
    level: Level
    kind: Kind | None = None
    affects: Affects = Affects.SELF
    user_induced: bool = False
    unknown: bool = False


def classify(lookup: Lookup, source: str, facts: Facts, severity: int | None) -> Fault:
    """``severity`` is the driver's, 0..3, or what was learnt of the code, None if neither."""
    row = facts.row
    if row is None:
        name = facts.decoded if lookup.source(source).graded and facts.decoded is not None else facts.code
        return Fault(name=name, level=_unknown_level(lookup, source, facts.key, severity), unknown=True)
    override = lookup.settings.unknown_level if facts.is_family else None
    return Fault(
        name=row.name,
        level=override or row.level,
        kind=row.kind,
        affects=row.affects,
        user_induced=row.user_induced,
        unknown=facts.is_family,
    )


def is_undecided(lookup: Lookup, condition: Condition) -> bool:
    """Its level hangs on a severity that nobody gave: it is taken to be the worst until somebody does."""
    if not condition.unknown or condition.severity is not None or condition.injected:
        return False
    facts = lookup.facts(condition.code)
    if facts.row is not None:
        return False
    mildest, worst = (_unknown_level(lookup, condition.source, facts.key, severity) for severity in (0, None))
    return mildest is not worst


def _unknown_level(lookup: Lookup, source: str, key: str, severity: int | None) -> Level:
    """As severe as the source says, where it grades its codes; those of other sources inform only. What
    another system reports is told to jobs: nobody has said that it takes anything out of service.
    """
    if source == PUBLIC:
        return Level.SUB_HEALTH
    if lookup.settings.unknown_level is not None:
        return lookup.settings.unknown_level
    traits = lookup.source(source)
    if not traits.graded:
        return Level.NOT_HANDLE
    if traits.is_of_network(key):
        return Level.PRE_SEPARATE_NPU
    return Level.NOT_HANDLE if severity in (0, 1) else Level.SEPARATE_NPU
