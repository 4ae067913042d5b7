"""The sorts of rules that a table may hold: a new one is a file here and a line in ``SORTS``."""

from collections.abc import Mapping
from typing import Final

from nodeagent.tables.sorts import counter, duration, frequency, pattern, relation, threshold
from nodeagent.tables.sorts.sort import Rule as Rule
from nodeagent.tables.sorts.sort import Sort as Sort

SORTS: Final[Mapping[str, Sort]] = {
    sort.key: sort
    for sort in (
        frequency.SORT,
        duration.SORT,
        threshold.SORT,
        counter.SORT,
        relation.SORT,
        pattern.SORT,
    )
}
"""The sorts of rules by the key that their tables stand under, in the order in which they are read and shown.
"""

_OF_RULES: Final[Mapping[type[Rule], Sort]] = {sort.rule: sort for sort in SORTS.values()}


def sort_of(rule: Rule) -> Sort:
    return _OF_RULES[type(rule)]
