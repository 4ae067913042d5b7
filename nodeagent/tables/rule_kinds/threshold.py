"""``[[threshold]]``: a reading above a bound becomes a fault."""

from msgspec import field

from nodeagent.core.catalog.catalog import ThresholdRule
from nodeagent.tables.rule_kinds.rule_kind import Objections, RuleSection, raised_code
from nodeagent.tables.sections.schema import Code, Finite, Identifier, RuleForm, UpToOneDay
from nodeagent.tables.texts import duration


class ThresholdForm(RuleForm, frozen=True, kw_only=True):
    code: Code
    metric: Identifier
    above: Finite
    clear_below: Finite
    for_ns: UpToOneDay = field(name="for")


def objections(form: ThresholdForm) -> Objections:
    if form.clear_below > form.above:
        yield "clear_below", f"{form.clear_below}: must not exceed above, {form.above}"


def text(rule: ThresholdRule) -> str:
    return (
        f"raised by {rule.metric} above {rule.above:g} for {duration(rule.for_ns)},"
        f" over below {rule.clear_below:g}"
    )


SECTION = RuleSection(
    key="threshold",
    in_catalog="threshold",
    form=ThresholdForm,
    rule=ThresholdRule,
    text=text,
    codes=raised_code,
    objections=objections,
)
