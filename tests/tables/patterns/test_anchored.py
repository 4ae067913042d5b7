"""A pattern that a name in the kernel's own lines could satisfy is refused, with what would be right."""

import pytest

from nodeagent.expressions import Expression
from nodeagent.tables.patterns import anchored
from nodeagent.tables.patterns.anchored import NOT_ANCHORED
from nodeagent.tables.patterns.syntax import parse

SOUND = [
    r"^NVRM: Xid \(PCI:(?P<pci>[0-9a-f:.]{7,16})\): (?P<code>\d+), (?P<text>.*)",
    r"\Aacme: card \d+ has failed",
    r"^(?:acme|acme2): card \d+ has failed",
    r"(?:^acme: card has failed|^acme: link has failed)",
    r"(?P<whole>^acme: card has failed)",
    r"^acme: card has failed|^acme: link has failed",
    r"(?i)^ACME: card has failed",
    r"^(?P<driver>[\w.-]{1,40}) (?P<pci>[0-9a-f]{4}:[0-9a-f]{2}): link has failed",
    r"^INFO: task (?P<task>.{1,15}):\d+ blocked for more than \d+ seconds",
    r"^kernel BUG at \S+:\d+!",
    r"^EDAC MC\d+: \d+ UE (?:[\w ,.-]{1,100} )?on [\w #.,-]{1,200} \(",
    r"^acme: down$",
    r"^(?:acme: up|acme: down)$",
    r"^(?i:acme): card has failed",
    r"^[[:lower:]]{1,8}: card \x41 has failed",
]

MIDDLE = [
    r"acme: card has failed",
    r"^acme: card has failed|acme: link has failed",
    r"(?:^acme: card|acme: link) has failed",
    r"(?:^acme: )?card \d+ of acme has failed",
    r"(?:^acme: )*card \d+ of acme has failed",
    r"acme: card has failed$",
    r"\bacme: card has failed",
    r"[^x]*^acme: card has failed",
]

VOID = [
    (r"^.*acme: card has failed", "allows any text between ^ and the first fixed text"),
    (r"^.*?acme: card has failed", "allows any text between ^ and the first fixed text"),
    (r"^[^:]*: card of acme has failed", "allows any text between ^ and the first fixed text"),
    (r"^.{4}acme: card has failed", "allows any text between ^ and the first fixed text"),
    (r"^....acme: card has failed", "allows any text between ^ and the first fixed text"),
    (r"^(?:.|\n)*acme: card has failed", "allows any text between ^ and the first fixed text"),
    (r"^(?:\S+ ){0,5}acme: card has failed", "allows any text between ^ and the first fixed text"),
    (r"^(?:acme: )?.*card of acme has failed", "allows any text between ^ and the first fixed text"),
    (r"^[\w ]{1,40}: card of acme has failed", "allows any text between ^ and the first fixed text"),
    (r"^\S+: card of acme has failed", "allows a name of any length before the first fixed text"),
    (r"^\w*: card of acme has failed", "allows a name of any length before the first fixed text"),
    (r"^NVRM: .*fallen off the bus", "allows any text after 6 fixed characters"),
    (r"^NVRM: (?:GPU\d+ )?.*fallen off the bus", "allows any text after 6 fixed characters"),
    (r"^XFS \([^)]+\): Metadata corruption", "allows any text after 5 fixed characters"),
    (r"^acme: (?:card )?[^x]{16}has failed", "allows any text after 6 fixed characters"),
    (r"^acme: down", "asks for 10 fixed characters"),
    (r"^kernel BUG at \S+", "asks for 14 fixed characters"),
    (r"^Internal error: .*", "asks for 16 fixed characters"),
    (r"^Oops: [0-9a-f]{4} \[#\d\]", "asks for 15 fixed characters"),
    (r"^(?:acme: card has failed|acme: no)", "asks for 8 fixed characters"),
    (r"^(?:acme: card has failed$|acme: no)", "asks for 8 fixed characters"),
    (r"^(?:a{20}b|c)", "asks for 1 fixed characters"),
    (r"^(?s:.)*acme: card has failed", "allows any text between ^ and the first fixed text"),
    (r"^[[:^alpha:]]{4}acme: card has failed", "allows any text between ^ and the first fixed text"),
]


def objection(regex: str) -> str | None:
    """Of an expression that RE2 takes."""
    Expression(regex)
    return anchored.objection(parse(regex))


@pytest.mark.parametrize("regex", SOUND)
def test_a_pattern_that_begins_with_the_words_of_a_message_is_sound(regex: str) -> None:
    assert objection(regex) is None


@pytest.mark.parametrize("regex", MIDDLE)
def test_one_that_may_match_in_the_middle_of_a_line_is_refused_in_whichever_branch(regex: str) -> None:
    assert objection(regex) == NOT_ANCHORED


@pytest.mark.parametrize(("regex", "reason"), VOID)
def test_one_whose_anchor_is_void_is_refused(regex: str, reason: str) -> None:
    said = objection(regex)
    assert said is not None
    assert said.startswith(reason)
