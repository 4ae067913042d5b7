"""Expressions of RE2: their groups, their sets, and that nothing of them is printed or kept."""

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent import expressions
from nodeagent.expressions import Expression, ExpressionError, ExpressionSet

HOSTILE = [r"^(?:a+)+b", r"^(?:a|aa)+b", r"^.*a.*a.*a.*a.*b", r"^(?:\w{1,16}-?){16}x"]
"""With each of them a matcher that backtracks takes hours for a line of 8 KiB."""


def test_the_named_groups_that_took_part_are_found() -> None:
    expression = Expression(r"Xid (?P<code>\d+)(?:, pid=(?P<pid>\d+))?(, x)?")
    assert expression.names == {"code", "pid"}
    assert expression.match(b"Xid 79, x") == {"code": "79"}
    assert expression.match(b"Xid 79, pid=1") == {"code": "79", "pid": "1"}
    assert expression.match(b"an Xid 79") is None
    assert expression.search(b"an Xid 79") == {"code": "79"}


@pytest.mark.parametrize("regex", HOSTILE)
def test_a_hostile_line_is_read_to_its_end(regex: str) -> None:
    line = b"a" * 8192
    assert Expression(regex).match(line) is None
    assert ExpressionSet([regex]).matching(line) == []


@pytest.mark.parametrize("regex", ["(a", "a(?=b)", "(?:.{1000}){1,1}" * 100])
def test_what_is_refused_is_raised_and_not_printed(regex: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ExpressionError, match=r"^not a regular expression of RE2: "):
        Expression(regex)
    assert capfd.readouterr() == ("", "")


def test_the_module_keeps_no_expression_that_nobody_uses() -> None:
    Expression("kept by nobody")
    assert re2._Regexp._make.cache_info().currsize == 0


def test_a_set_that_needs_too_much_memory_is_divided_and_answers_the_same(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    regexes = [rf"^part {number}:[^x]{{1,{300 + number}}}x" for number in range(40)]
    texts = [f"part {number}: y{'x' * (number % 3)}".encode() for number in range(45)]
    whole = ExpressionSet(regexes)
    monkeypatch.setattr(expressions, "MAX_SET_BYTES", 1 << 20)
    divided = ExpressionSet(regexes)

    assert (len(whole._sets), len(divided._sets) > 1) == (1, True)
    assert [divided.matching(text) for text in texts] == [whole.matching(text) for text in texts]
    assert [whole.matching(text) for text in texts[:4]] == [[], [1], [2], []]
    assert capfd.readouterr() == ("", "")


ATOMS = st.sampled_from(
    [
        "a",
        "b",
        ".",
        r"\d",
        r"\w",
        r"\s",
        r"\b",
        r"\B",
        "^",
        "$",
        "[a-c]",
        "[^b]",
        "(?i:B)",
        "(?s:.)",
        "é",
        "[[:alpha:]]",
    ]
)
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "*?", "{2}", "{1,2}"])
TEXTS = st.text(alphabet="aabbcB 0_-é\n", max_size=12)


@st.composite
def regexes(draw: st.DrawFn) -> str:
    parts = [draw(ATOMS) + draw(REPEATS) for _ in range(draw(st.integers(1, 4)))]
    return "|".join(parts) if draw(st.booleans()) else "".join(parts)


@settings(max_examples=200, deadline=None)
@given(st.lists(regexes(), min_size=1, max_size=6), TEXTS)
def test_a_set_finds_what_its_expressions_match_alone(regexes: list[str], text: str) -> None:
    alone = [
        number for number, each in enumerate(regexes) if Expression(each).match(text.encode()) is not None
    ]
    assert ExpressionSet(regexes).matching(text.encode()) == alone
