"""The kinds of rules that raise a fault of their own: a new one is its file and a line here."""

from typing import Final

from nodeagent.core.rules import common_cause, counter, threshold
from nodeagent.core.rules.kind import RuleKind

RULE_KINDS: Final[tuple[RuleKind, ...]] = (threshold.KIND, counter.KIND, common_cause.KIND)
