"""No name that a user chooses makes a line of the kernel the line of a fault, in any line that quotes one."""

import re
from collections.abc import Iterator

import pytest

from nodeagent.drivers.kmsg.match import Matcher
from nodeagent.drivers.kmsg.quoting import BEHIND_A_LONG_NAME, begins_with_a_long_name
from tests.forging.automata import common_line, of_regex
from tests.forging.shipped import faults, fragment_takers, languages, samples, shortest
from tests.forging.templates import Template, templates

TEMPLATES = templates()
NAME_CHARS = 15


def named(template: Template) -> str:
    return re.sub(r"\W+", "-", template.text)[:60]


def names(fault: str) -> Iterator[tuple[str, str]]:
    """Pairs of names that say a fault: all of it in one, or what a program's name holds and then the rest."""
    for first in (fault, f"x\n{fault}"):
        yield first, fault
        yield first, f"\n{fault[NAME_CHARS:]}"


@pytest.mark.parametrize("template", [each for each in TEMPLATES if not each.long], ids=named)
def test_no_name_that_there_is_makes_it_a_fault(template: Template) -> None:
    said = template.language()
    may_take = fragment_takers() if template.continued else languages().keys()
    for pattern in sorted(may_take - template.about):
        forged = common_line(said, languages()[pattern])
        assert forged is None, f"{pattern} takes what {template.source} may say: {forged!r}"


@pytest.mark.parametrize("template", TEMPLATES, ids=named)
def test_the_words_of_no_fault_make_it_one(matcher: Matcher, template: Template) -> None:
    """With the shortest line of each pattern: of all names, the languages say so above. A line with a long
    name has no language: there it is every fault that is known.
    """
    said = faults() if template.long else shortest()
    lines = sorted({template.filled(*chosen) for fault in said for chosen in names(fault)})
    continued = range(len(lines)) if template.continued else ()
    found = {
        match.pattern: line
        for line, match in zip(lines, matcher.match(lines, continued), strict=True)
        if match
    }
    assert found.keys() <= template.about, found


@pytest.mark.parametrize("template", [each for each in TEMPLATES if each.long], ids=named)
def test_a_line_that_begins_with_a_long_name_is_known_by_what_stands_behind_it(template: Template) -> None:
    assert all(begins_with_a_long_name(template.filled(fault, fault)) for fault in faults())
    assert not any(begins_with_a_long_name(fault) for fault in faults())


@pytest.mark.parametrize(
    "template", [each for each in TEMPLATES if each.about and each.only_short], ids=named
)
def test_no_short_name_leaves_out_the_line_of_a_fault(template: Template) -> None:
    left_out = of_regex(rf"(?s:.*)(?:{BEHIND_A_LONG_NAME.pattern})")
    assert common_line(template.language(), left_out) is None


@pytest.mark.parametrize(
    "name", ["x\ny", "\n", "a b", ": 1", ">", ")", "", "\x00\u2713", "IN= OUT= SRC=1", ",mems_allowed=0"]
)
def test_no_name_of_a_program_hides_the_fault_it_stands_in(matcher: Matcher, name: str) -> None:
    inside = [each for each in TEMPLATES if each.about and each.only_short and each.text[0] != "{"]
    found = matcher.match([template.filled(name, name) for template in inside])
    hidden = [each.text for each, match in zip(inside, found, strict=True) if match is None]
    assert not hidden


def test_a_line_that_continues_another_is_taken_only_of_a_driver_that_writes_so(matcher: Matcher) -> None:
    """Its beginning may be the name of a control group: one that was interrupted twice says nothing else."""
    lines = samples()
    found = matcher.match(lines, continued=range(len(lines)))
    assert {match.pattern for match in found if match} == fragment_takers()
    assert all(pattern.startswith("NV_") for pattern in fragment_takers())
    assert None not in matcher.match(lines)
