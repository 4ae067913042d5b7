"""What the search for a forged line rests on: it finds a line that two languages share, and no other."""

import re

import pytest

from nodeagent.drivers.kmsg.match import Matcher
from tests.forging.automata import common_line, of_regex
from tests.forging.shipped import languages, samples


@pytest.mark.parametrize(
    ("said", "matched", "shared"),
    [
        ("ab$", "^a", "a"),
        ("ab$", "^b", None),
        (r"<[^\0]{0,2}>$", "^<a>b", None),
        (r"<[^\0]{0,3}>$", "^<a>b", "<a>b"),
        ("[^x]$", "^.$", "a"),
        ("\n$", "^.", None),
        ("\n$", "^(?s:.)", "\n"),
        ("\n$", "(?s)^(?-s:.)", None),
        ("a{2}$", "^(?:a|b){3}", None),
        ("a{3}$", "^(?:ab?)+a$", "aaa"),
        ("ab$", "^a$", None),
        ("(?:name)?: fault$", r"^\S+: fault", "name: fault"),
    ],
)
def test_the_beginning_of_a_line_of_both_is_found_where_there_is_one(
    said: str, matched: str, shared: str | None
) -> None:
    assert common_line(of_regex(said), of_regex(matched)) == shared


def test_the_line_of_a_fault_is_found_for_the_pattern_that_takes_it(matcher: Matcher) -> None:
    lines = samples()
    taken = dict(zip(lines, matcher.match(lines), strict=True))
    not_found = [
        text
        for text, match in taken.items()
        if match is None or common_line(of_regex(f"{re.escape(text)}$"), languages()[match.pattern]) is None
    ]
    assert not_found == []
