"""``[[counter]]``: a counter that rises too fast becomes a fault."""

from typing import Annotated

from msgspec import Meta, field

from nodeagent.core.catalog.catalog import EACH_PART, CounterRule
from nodeagent.tables.rule_kinds.rule_kind import RuleSection, raised_code
from nodeagent.tables.sections.schema import Code, Metric, RuleForm, TimeWindow
from nodeagent.tables.texts import duration


class CounterForm(RuleForm, frozen=True, kw_only=True):
    code: Code
    metric: Metric
    increase: Annotated[int, Meta(ge=1, le=2**63 - 1, description="a whole number of 1 or more")]
    time_window_ns: TimeWindow = field(name="time_window")
    lifetime: bool = False


def text(rule: CounterRule) -> str:
    metric = f"any of {rule.metric}" if rule.metric.endswith(EACH_PART) else rule.metric
    return f"raised by {metric} growing by {rule.increase} in {duration(rule.time_window_ns)}"


SECTION = RuleSection(
    key="counter",
    in_catalog="counter",
    form=CounterForm,
    rule=CounterRule,
    text=text,
    codes=raised_code,
)
