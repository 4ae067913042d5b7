"""The expressions of the kernel log's patterns are compiled once in each process of the suite.

Compiling those of the shipped tables takes a tenth of a second of processor time. An expression keeps nothing
of the texts that it has matched. What RE2 refuses is compiled, and refused, each time.
"""

from collections.abc import Sequence
from functools import lru_cache

import pytest

from nodeagent.drivers.kmsg import match
from nodeagent.expressions import Expression, ExpressionSet


def remember(patch: pytest.MonkeyPatch) -> None:
    """Until the patch is undone."""
    compiled_set = lru_cache(maxsize=4)(ExpressionSet)

    def set_of(regexes: Sequence[str]) -> ExpressionSet:
        return compiled_set(tuple(regexes))

    patch.setattr(match, "Expression", lru_cache(maxsize=1024)(Expression))
    patch.setattr(match, "ExpressionSet", set_of)
