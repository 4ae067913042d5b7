"""Expressions by which a line could wedge the matcher are refused with the reason; others are not."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import TablesError, load_catalog
from nodeagent.tables.patterns.automaton import OTHER, Automaton, automaton_of, tree_of
from nodeagent.tables.patterns.backtracking import (
    CUBIC,
    EMPTY,
    EXPONENTIAL,
    NESTED,
    REFERS,
    TOO_LARGE,
    must_part,
    objections,
)
from tests.shipped import shipped_catalog
from tests.tables.patterns.backtracker import Backtracker

REPOSITORY = Path(__file__).parents[3]
RECORD_BYTES = 8192
"""The longest that a kernel gives of /dev/kmsg (CONSOLE_EXT_LOG_MAX in include/linux/printk.h)."""

REFUSED = [
    (r"(a+)+(b)?\2$", [NESTED, REFERS]),
    (r"(.)\1", [REFERS]),
    (r"(?P<word>\w)(?P=word)", [REFERS]),
    (r"(a)?(?(1)b|c)", [REFERS]),
    (r"(?:a+)+b", [NESTED]),
    (r"(?:\w+ )*timeout", [NESTED]),
    (r"(?:a{1,20}){1,20}b", [NESTED]),
    (r"x(?=(?:a+)+b)", [NESTED]),
    (r"(?>a*?)+b", [EMPTY, NESTED]),
    (r"(?:a?)+b", [EMPTY]),
    (r"(?:a?){20}b", [EMPTY]),
    (r"(?:a|aa)+b", [EXPONENTIAL]),
    (r"(?:ab|cd|abcd)*x", [EXPONENTIAL]),
    (r"(?:.|.)*x", [EXPONENTIAL]),
    (r"(?i:k|(?-i:K)y?)+x", [EXPONENTIAL]),
    (r"(?:\d{1,3})+x", [EXPONENTIAL]),
    (r"(?:\w{1,16}-?){16}x", [EXPONENTIAL]),
    (r"(?:(?:a?)?b)*x", [EXPONENTIAL]),
    (r"(?:(?:ab|a.){16}){16}x", [EXPONENTIAL]),
    (r".*a.*b.*c", [CUBIC]),
    (r"\w+\d+\w+:", [CUBIC]),
    (r"\s*\s*\s*x", [CUBIC]),
    (r"a+a+,b+b+,", [CUBIC]),
    (r"(?:\w+){3}x", [CUBIC]),
    (r"a{1,20}a{1,20}a{1,20}x", [CUBIC]),
    ("a?" * 900 + "b", [TOO_LARGE]),
]
ACCEPTED = [
    r"NVRM: .* failed: (?P<text>.*)",
    r"(?P<a>[^,]*),(?P<b>[^,]*),(?P<c>[^,]*),.*x",
    r"(?:\d{1,3}\.){3}\d{1,3} is down",
    r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}",
    r"(?:[0-9a-f]{4})+x",
    r"name=(?:[^,]|,(?! ))*, x",
    r"(?:\w+ ){0,3}(?:fail|timeout)",
    r"(?:timeout|failure|error)+ on",
    r"\[ascend\].*reset.*fail(?:.*dev=\d+)?",
    r"(?:.*a|.*b).*c",
    r"a b c d e f g h i j \S+ k",
    r"(?<=ab)c\b.*$",
]


@pytest.mark.parametrize(("regex", "reasons"), REFUSED, ids=[regex[:30] for regex, _ in REFUSED])
def test_expression_that_a_line_could_wedge_is_refused(regex: str, reasons: list[str]) -> None:
    re.compile(regex)
    assert sorted(objections(regex)) == sorted(reasons)


@pytest.mark.parametrize("regex", ACCEPTED)
def test_expression_that_reads_a_line_in_few_ways_is_taken(regex: str) -> None:
    assert list(objections(regex)) == []


def test_tables_name_the_file_the_line_and_what_would_be_right(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(
        'kind = "host"\n[codes.X]\nname = "x"\nlevel = "NotHandleFault"\nclear_on = ["10m"]\n\n'
        '[[pattern]]\nid = "X"\ncode = "X"\ndevice = "node"\n'
        "regex = '''^a driver says (a+)+(b)?\\2$'''\n"
    )
    with pytest.raises(TablesError) as refused:
        load_catalog([tmp_path], Settings())
    place = f"{tmp_path}/site.toml:11: pattern[0].regex"
    assert str(refused.value).splitlines() == [f"{place}: {NESTED}", f"{place}: {REFERS}"]


# --------------------------------------------------------------------------- any expression

CHARACTERS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]"])
TURNS = st.sampled_from(["*", "+", "?", "{2}", "{0,3}", "{1,2}", "{5}", "{2,20}", "{17}"])


def larger(smaller: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}{}".format, smaller, smaller),
        st.builds("(?:{}|{})".format, smaller, smaller),
        st.builds("(?:{}){}".format, smaller, TURNS),
        st.builds("(?!{})b".format, smaller),
    )


@settings(max_examples=300)
@given(st.recursive(CHARACTERS, larger, max_leaves=6), st.text("ab", min_size=1, max_size=3))
def test_what_is_taken_costs_no_more_than_the_square_of_the_line(regex: str, word: str) -> None:
    """By a matcher that tries all ways, on a line that never matches: it raises where they are too many."""
    regex += "X"
    if not list(objections(regex)):
        line = (word * 40)[:40]
        assert not Backtracker(line, limit=100 * len(line) ** 2).match(regex)


# --------------------------------------------------------------------------- shipped patterns


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return shipped_catalog()


@pytest.mark.slow
def test_shipped_patterns_take_bounded_steps_on_hostile_lines_as_long_as_a_record(catalog: Catalog) -> None:
    """From where a match begins; a line of the kernel itself has about 1,000 characters."""
    steps = dict[str, int]()
    for pattern in catalog.patterns:
        made = must(pattern.regex)
        for line in hostile(made):
            steps[pattern.id] = max(steps.get(pattern.id, 0), ways(made, line))
    assert len(steps) > 60
    assert {name: count for name, count in steps.items() if count > RECORD_BYTES**2} == {}


def must(regex: str) -> Automaton:
    tree = tree_of(regex)
    return automaton_of(tree, must_part(tree)[0])


def hostile(made: Automaton) -> Iterator[str]:
    """Lines that begin as the pattern does, and then go round and round in its repetitions."""
    for number, loop in enumerate(made.loops):
        begun = way(made, made.first, loop)
        begin = spelt(made, begun)
        yield filled(begin, spelt(made, [loop.start]))
        for later in made.loops[number + 1 : number + 2]:
            if between := way(made, made.then[begun[-1]], later):
                yield filled(begin, spelt(made, between))
                if made.takes[loop.start] & made.takes[later.start]:
                    shared = character(made.takes[loop.start] & made.takes[later.start])
                    middle = shared * (RECORD_BYTES // 2) + spelt(made, between)
                    yield filled(begin + middle, shared)


def filled(begin: str, word: str) -> str:
    return (begin + word * RECORD_BYTES)[:RECORD_BYTES]


def way(made: Automaton, begin: Iterable[int], goal: Sequence[int]) -> tuple[int, ...]:
    """The shortest one; none if there is none."""
    seen = set(begin)
    ways = deque[tuple[int, ...]]((state,) for state in seen)
    while ways:
        found = ways.popleft()
        if found[-1] in goal:
            return found
        ways += ((*found, state) for state in made.then[found[-1]] if state not in seen)
        seen |= made.then[found[-1]].keys()
    return ()


def spelt(made: Automaton, states: Iterable[int]) -> str:
    return "".join(character(made.takes[state]) for state in states)


def character(taken: int) -> str:
    """A usual one of the set."""
    usual = (chr(number) for number in (97, 48, 32, *range(33, 127), 9))
    return next((each for each in usual if taken >> ord(each) & 1), "é")


def ways(made: Automaton, line: str) -> int:
    """In how many ways a matcher that fails in the end has come to any place of the line: its steps."""
    total, here = 0, dict.fromkeys((s for s in made.first if takes(made, s, line[0])), 1)
    onward = dict[tuple[int, str], list[int]]()
    for following, run in groupby(line[1:]):
        left = len(list(run))
        while left:
            total += sum(here.values())
            left -= 1
            after = dict[int, int]()
            for state, count in here.items():
                if (state, following) not in onward:
                    onward[state, following] = [
                        then for then in made.then[state] if takes(made, then, following)
                    ]
                for then in onward[state, following]:
                    after[then] = after.get(then, 0) + count
            if after == here:  # and so it goes on, as long as the same character follows
                total += left * sum(here.values())
                break
            here = after
    return total


def takes(made: Automaton, state: int, each: str) -> bool:
    return bool(made.takes[state] & (1 << ord(each) if each.isascii() else OTHER))
