"""The kinds of rules that a table may hold: a new one is a file here and a line in ``RULE_SECTIONS``."""

from collections.abc import Mapping
from typing import Final

from nodeagent.tables.rule_kinds import (
    common_cause,
    counter,
    duration,
    frequency,
    pattern,
    relation,
    threshold,
)
from nodeagent.tables.rule_kinds.rule_kind import Rule as Rule
from nodeagent.tables.rule_kinds.rule_kind import RuleSection as RuleSection

RULE_SECTIONS: Final[Mapping[str, RuleSection]] = {
    section.key: section
    for section in (
        frequency.SECTION,
        duration.SECTION,
        threshold.SECTION,
        counter.SECTION,
        common_cause.SECTION,
        relation.SECTION,
        pattern.SECTION,
    )
}
"""The kinds of rules by the key of their tables, in the order in which they are read and shown.
"""

_OF_RULES: Final[Mapping[type[Rule], RuleSection]] = {
    section.rule: section for section in RULE_SECTIONS.values()
}


def sort_of(rule: Rule) -> RuleSection:
    return _OF_RULES[type(rule)]
