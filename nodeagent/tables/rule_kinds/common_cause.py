"""``[[common_cause]]``: a fault on several devices at once is the node's."""

from typing import Annotated

from msgspec import Meta, field

from nodeagent.core.catalog.catalog import CommonCauseRule
from nodeagent.core.catalog.codes import canonical, covers
from nodeagent.tables.rule_kinds.rule_kind import Named, Objections, RuleSection
from nodeagent.tables.sections.schema import Code, Codes, RuleForm, UpToOneDay
from nodeagent.tables.texts import duration


class CommonCauseForm(RuleForm, frozen=True, kw_only=True):
    """``within`` left out: it is enough that the faults are there at the same time."""

    code: Code
    codes: Codes
    devices: Annotated[int, Meta(ge=2, le=1024, description="a whole number from 2 to 1024")]
    within_ns: UpToOneDay = field(default=0, name="within")


def objections(form: CommonCauseForm) -> Objections:
    for code in form.codes:
        if covers(canonical(code), canonical(form.code)):
            yield "codes", f'"{code}": names {form.code} too, which the rule itself raises'


def text(rule: CommonCauseRule) -> str:
    near = f" within {duration(rule.within_ns)}" if rule.within_ns else ""
    return f"raised by {rule.watches} on {rule.devices} devices or more at once{near}"


def codes(rule: CommonCauseRule) -> Named:
    yield "code", rule.code
    yield from (("codes", code) for code in rule.codes)


SECTION = RuleSection(
    key="common_cause",
    in_catalog="common_cause",
    form=CommonCauseForm,
    rule=CommonCauseRule,
    text=text,
    codes=codes,
    objections=objections,
)
