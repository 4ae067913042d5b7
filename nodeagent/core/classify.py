"""From a raw code to a fault: the row's words, or the rules for codes that no row names.

It decides a level, never a verdict, and changes nothing.
"""

from dataclasses import dataclass

from nodeagent.core.catalog import SECOND_NS
from nodeagent.core.lookup import Facts, Lookup
from nodeagent.core.model import Affects, Kind, Level

SHARED_NS = 30 * SECOND_NS
"""Two chips that show an unknown code within this time have a common cause, not a broken chip each."""


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
        name = facts.decoded if source == "ascend" and facts.decoded is not None else facts.code
        return Fault(name=name, level=_unknown_level(lookup, source, severity), unknown=True)
    override = lookup.settings.unknown_level if facts.is_family else None
    return Fault(
        name=row.name,
        level=override or row.level,
        kind=row.kind,
        affects=row.affects,
        user_induced=row.user_induced,
        unknown=facts.is_family,
    )


def _unknown_level(lookup: Lookup, source: str, severity: int | None) -> Level:
    """As the Ascend device plug-in does for its own codes; codes of other sources inform only."""
    if lookup.settings.unknown_level is not None:
        return lookup.settings.unknown_level
    if source != "ascend" or severity in (0, 1):
        return Level.NOT_HANDLE
    return Level.SEPARATE_NPU
