"""``[[pattern]]``: a line of the kernel log becomes a signal."""

from typing import Annotated

from msgspec import Meta

from nodeagent.core.catalog.catalog import Pattern
from nodeagent.core.model import Assertion
from nodeagent.tables.patterns.templates import pattern_objections
from nodeagent.tables.rule_kinds.rule_kind import Named, Objections, RuleSection
from nodeagent.tables.sections.schema import RuleForm


class PatternForm(RuleForm, frozen=True, kw_only=True):
    """``device`` is "node", a group of ``regex`` or a name of groups. A line in which these take no part
    is the node's, with the code ``unnamed`` if there is one.

    ``regex`` is matched where the message begins. What the kernel marks as the continuation of another line
    (``KERN_CONT``) begins with whatever is quoted there, and is left out but for a driver that marks all of
    its lines so, which sets ``continuation``. ``part`` names the part of the device, such as a MIG instance,
    that a line is about where its groups took part.

    ``unless``: a line that this matches too, where the message begins, is left out. ``find`` is searched in
    what the group "rest" of ``regex`` matched, and adds its groups where it is found.
    """

    code: Annotated[str, Meta(min_length=1, max_length=128, description="a code that may name {groups}")]
    regex: Annotated[str, Meta(min_length=1, max_length=2000, description="a regular expression in quotes")]
    device: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description='"node", the name of a group, or a name that holds {groups}',
        ),
    ]
    unless: Annotated[str, Meta(max_length=2000, description="a regular expression in quotes")] = ""
    find: Annotated[str, Meta(max_length=2000, description="a regular expression in quotes")] = ""
    unnamed: Annotated[str, Meta(max_length=128, description="a code that may name {groups}")] = ""
    assertion: Assertion = Assertion.ONCE
    continuation: bool = False
    part: Annotated[str, Meta(max_length=64, description='a name that holds {groups}, such as "gi{gi}"')] = ""


def objections(form: PatternForm) -> Objections:
    return pattern_objections(form)


def text(rule: Pattern) -> str:
    return rule.regex


def codes(_: Pattern) -> Named:
    """Its code is a template, and is checked as that."""
    return ()


SECTION = RuleSection(
    key="pattern",
    in_catalog="patterns",
    form=PatternForm,
    rule=Pattern,
    text=text,
    codes=codes,
    objections=objections,
)
