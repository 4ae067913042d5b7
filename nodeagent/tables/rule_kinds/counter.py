"""``[[counter]]``: a counter that rises too fast becomes a fault."""

from typing import Annotated

from msgspec import Meta, field

from nodeagent.core.catalog.catalog import CounterRule
from nodeagent.tables.rule_kinds.rule_kind import RuleSection, raised_code
from nodeagent.tables.sections.schema import Code, Identifier, RuleForm, TimeWindow
from nodeagent.tables.texts import duration


class CounterForm(RuleForm, frozen=True, kw_only=True):
    code: Code
    metric: Identifier
    increase: Annotated[int, Meta(ge=1, le=2**63 - 1, description="a whole number of 1 or more")]
    time_window_ns: TimeWindow = field(name="time_window")


def words(rule: CounterRule) -> str:
    return f"raised by {rule.metric} growing by {rule.increase} in {duration(rule.time_window_ns)}"


SECTION = RuleSection(
    key="counter",
    in_catalog="counter",
    form=CounterForm,
    rule=CounterRule,
    words=words,
    codes=raised_code,
)
