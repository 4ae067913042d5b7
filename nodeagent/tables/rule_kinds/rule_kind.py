"""What the tables must know of a kind of rules: how it is written, what of it is checked, how it is shown."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from nodeagent.core.catalog.catalog import DurationRule, FrequencyRule, Pattern, RaisingRule, RelationRule
from nodeagent.core.model import Level
from nodeagent.tables.sections.schema import RuleForm

Rule = FrequencyRule | DurationRule | RaisingRule | RelationRule | Pattern
"""Whatever has an id."""

Objections = Iterable[tuple[str, str]]
"""What is wrong beyond the types of a form: pairs of key and reason."""

Named = Iterable[tuple[str, str]]
"""Pairs of a key and a code in it."""


def _nothing(_: Any) -> Objections:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSection:
    """``key`` is the key of its tables, ``in_catalog`` its field of the catalog. ``text`` gives in one
    line what a rule does, ``codes`` name the codes that need a row. ``first_counts``: only the first rule
    that names a code counts.
    """

    key: str
    in_catalog: str
    form: type[RuleForm]
    rule: type[Rule]
    text: Callable[[Any], str]
    codes: Callable[[Any], Named]
    objections: Callable[[Any], Objections] = _nothing
    first_counts: bool = False


def codes_of_list(rule: FrequencyRule | DurationRule) -> Named:
    return (("codes", code) for code in rule.codes)


def raised_code(rule: RaisingRule) -> Named:
    return (("code", rule.code),)


def manual_separation(level: Level | None) -> Objections:
    if level is Level.MANUALLY_SEPARATE_NPU:
        yield "level", f"{level} may be given by a frequency rule only"
