"""``[[duration]]``: a fault that lasts takes another level."""

from msgspec import field

from nodeagent.core.catalog.catalog import DurationRule
from nodeagent.core.model import Level
from nodeagent.tables.rule_kinds.rule_kind import Objections, RuleSection, codes_of_list, manual_separation
from nodeagent.tables.sections.schema import Codes, RuleForm, UpToOneDay, UpToTenMinutes
from nodeagent.tables.texts import duration


class DurationForm(RuleForm, frozen=True, kw_only=True):
    codes: Codes
    fault_timeout_ns: UpToTenMinutes = field(name="fault_timeout")
    recover_timeout_ns: UpToOneDay = field(name="recover_timeout")
    level: Level


def objections(form: DurationForm) -> Objections:
    yield from manual_separation(form.level)
    for code in form.codes:
        if code.endswith("*"):
            yield "codes", f'"{code}": a duration rule must name its codes'


def text(rule: DurationRule) -> str:
    return (
        f"there for longer than {duration(rule.fault_timeout_ns)}: {rule.level};"
        f" over once gone for longer than {duration(rule.recover_timeout_ns)}"
    )


SECTION = RuleSection(
    key="duration",
    in_catalog="duration",
    form=DurationForm,
    rule=DurationRule,
    text=text,
    codes=codes_of_list,
    objections=objections,
    first_counts=True,
)
