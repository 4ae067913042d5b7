"""``[[relation]]``: two faults near each other are one, or a worse one, or one ends the other."""

from typing import Literal

from msgspec import field

from nodeagent.core.catalog.catalog import RelationRule
from nodeagent.core.model import Level
from nodeagent.tables.rule_kinds.rule_kind import Named, Objections, RuleSection, manual_separation
from nodeagent.tables.sections.schema import Code, Codes, RuleForm, UpToOneDay
from nodeagent.tables.texts import duration


class RelationForm(RuleForm, frozen=True, kw_only=True):
    code: Code
    with_codes: Codes = field(name="with")
    within_ns: UpToOneDay = field(name="within")
    same: Literal["device", "node", "job"]
    then: Literal["absorb", "level", "cancel"]
    level: Level | None = None


def objections(form: RelationForm) -> Objections:
    if form.then == "level" and form.level is None:
        yield "level", 'missing; then = "level" needs one'
    if form.then != "level" and form.level is not None:
        yield "level", f'{form.level}: goes with then = "level" only'
    if form.then != "cancel" and not form.within_ns:
        yield "within", '"0s": only then = "cancel" may reach back however long'
    yield from manual_separation(form.level)


def text(rule: RelationRule) -> str:
    level = "" if rule.level is None else f" {rule.level}"
    return (
        f"{rule.code} within {duration(rule.within_ns)} of {', '.join(rule.with_codes)}"
        f" on the same {rule.same}: {rule.then}{level}"
    )


def codes(rule: RelationRule) -> Named:
    yield "code", rule.code
    yield from (("with", code) for code in rule.with_codes)


SECTION = RuleSection(
    key="relation",
    in_catalog="relation",
    form=RelationForm,
    rule=RelationRule,
    text=text,
    codes=codes,
    objections=objections,
)
