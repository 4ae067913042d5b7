"""Patterns that are refused, each with the reason and what to write in its place."""

from pathlib import Path

import pytest

from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import TablesError, load_catalog

WORDS = "^acme: card has failed"
RE2 = "not a regular expression of RE2: "

REFUSED = [
    # What Python's re and PCRE have, and RE2 has not.
    (rf"{WORDS}(?=, reset)", "invalid perl operator: (?=: it looks ahead; match the text itself, or"),
    (rf"{WORDS}(?!, reset)", "invalid perl operator: (?!: it looks ahead; put what must not follow into"),
    (rf"{WORDS}(?<=ed)", "invalid perl operator: (?<=: it looks behind; match the text before it"),
    (rf"{WORDS}(?<!no)", "invalid perl operator: (?<!: it looks behind; match the text before it"),
    (rf"{WORDS} (a|b)\1", "invalid escape sequence: \\1: it refers back to what a group matched; write out"),
    (rf"{WORDS} (?P<x>a)(?P=x)", "invalid perl operator: (?P: it refers back to what a group matched"),
    (rf"{WORDS}( a)?(?(1)b|c)", "invalid perl operator: (?(: it depends on a group; write two alternatives"),
    (rf"{WORDS} (?>a+)", "invalid perl operator: (?>: it has an atomic group; write (?: in its place"),
    (rf"{WORDS} a++", "bad repetition operator: ++: it has a possessive repetition; leave out its second +"),
    (rf"{WORDS} a{{1,2}}+", "bad repetition operator: {1,2}+: it has a possessive repetition; leave out"),
    (rf"{WORDS} a**", "bad repetition operator: **: it repeats a repetition; put the inner one into (?: )"),
    (rf"{WORDS} (?#why)", "invalid perl operator: (?#: it has a comment; write it above the pattern"),
    (rf"(?x){WORDS}", "invalid perl operator: (?x: it sets a flag that RE2 does not have; only i and s"),
    (rf"{WORDS}\Z", "invalid escape sequence: \\Z: it has \\Z; write $ where the message ends"),
    (rf"{WORDS} \u00e9", "invalid escape sequence: \\u: it has an escape that RE2 does not have; write the"),
    (
        rf"{WORDS} a{{1,2000}}",
        "invalid repetition size: {1,2000}: it repeats more than 1,000 times, alone or",
    ),
    (rf"{WORDS} (?:a{{99}}){{99}}", "invalid repetition size: {99}: it repeats more than 1,000 times, alone"),
    (WORDS + " .{1000}" * 100, "pattern too large - compile failed: it needs too much memory; let its"),
    (rf"{WORDS} (a", "missing ): "),
    (rf"{WORDS} [a", "missing ]: "),
]

MEANT_OTHERWISE = [
    # What RE2 takes, and reads otherwise than it is meant.
    (rf"{WORDS} a{{,3}}", 'counts from nothing, as "{,3}" does; write {0,3}'),
    (rf"{WORDS} (?P<x>a)(?P<x>b)", 'names two groups "x"; give each a name of its own'),
    (rf"{WORDS} (?P<1>a)", 'names a group "1"; a name is made of letters, digits and _'),
    (rf"(?m){WORDS}", 'sets the flag "m"; only i and s are taken'),
    (rf"(?U){WORDS}", 'sets the flag "U"; only i and s are taken'),
    (rf"{WORDS} \pN", r"has \p; write out the characters that it takes"),
    (rf"{WORDS} \Q.\E", r"has \Q; write out the characters that it takes"),
    (rf"{WORDS} \C", r"has \C; write out the characters that it takes"),
    (WORDS + "(" * 60 + ")" * 60, "nests groups more than 50 deep"),
    ("", '"": must be a regular expression in quotes'),
    ("^a*", "matches an empty line, and so every line"),
]


def problems(folder: Path, regex: str, **keys: str) -> list[str]:
    """What is reported of a table with this pattern, without the folder."""
    more = "".join(f"{key} = '''{value}'''\n" for key, value in ({"device": "node"} | keys).items())
    (folder / "site.toml").write_text(
        'kind = "host"\n[codes.X]\nname = "x"\nlevel = "NotHandleFault"\nclear_on = ["10m"]\n\n'
        f"[[pattern]]\nid = \"X\"\ncode = \"X\"\nregex = '''{regex}'''\n{more}"
    )
    try:
        load_catalog([folder], Settings())
    except TablesError as refused:
        return [line.removeprefix(f"{folder}/") for line in str(refused).splitlines()]
    return []


@pytest.mark.parametrize(("regex", "reason"), REFUSED, ids=[reason[:40] for _, reason in REFUSED])
def test_what_re2_does_not_take_is_refused_with_the_place_and_the_nearest_form(
    tmp_path: Path, regex: str, reason: str
) -> None:
    (problem,) = problems(tmp_path, regex)
    assert problem.startswith(f"site.toml:10: pattern[0].regex: {RE2}{reason}")


@pytest.mark.parametrize(("regex", "reason"), MEANT_OTHERWISE, ids=[r[:40] for _, r in MEANT_OTHERWISE])
def test_what_would_mean_something_else_is_refused_with_the_reason(
    tmp_path: Path, regex: str, reason: str
) -> None:
    (problem,) = problems(tmp_path, regex)
    assert problem.startswith(f"site.toml:10: pattern[0].regex: {reason}")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"unless": "^.*(?!x)"}, f"unless: {RE2}invalid perl operator: (?!: it looks ahead; put what"),
        (
            {"unless": "reset"},
            "unless: is matched where the message begins, as regex is: it must begin",
        ),
        (
            {"unless": "^a|b"},
            "unless: is matched where the message begins, as regex is: it must begin",
        ),
        ({"unless": "^.*"}, "unless: matches every line, so that the pattern would match none"),
        (
            {"find": r"dev=(?P<d>\d+)"},
            'find: is searched in what the group "rest" of regex matched',
        ),
        ({"find": "(a"}, f"find: {RE2}missing ): (a"),
    ],
)
def test_unless_and_find_are_checked_as_regex_is(tmp_path: Path, keys: dict[str, str], problem: str) -> None:
    (found,) = problems(tmp_path, rf"{WORDS}: (?P<text>.*)", **keys)
    assert found.split("pattern[0].")[1].startswith(problem)


@pytest.mark.parametrize(
    ("find", "problem"),
    [
        (r"dev=\d+", "find: names no group, and is there for groups alone; name one"),
        (r"(?P<dev>\d*)", "find: matches an empty text, and so finds nothing"),
        (r"dev=(?P<text>\d+)", 'find: names the group "text", as regex does; give it another name'),
        (r"(?P<count>\w+) errors", 'find: its group "count" may take more than a number'),
    ],
)
def test_find_has_groups_of_its_own(tmp_path: Path, find: str, problem: str) -> None:
    (found,) = problems(tmp_path, rf"{WORDS}(?P<text>:) (?P<rest>.*)", find=find)
    assert found.split("pattern[0].")[1].startswith(problem)


def test_templates_may_name_the_groups_of_find_and_not_the_rest(tmp_path: Path) -> None:
    regex, find = rf"{WORDS}(?P<rest>.*)", r"dev=(?P<dev>\d+)"
    assert problems(tmp_path, regex, find=find, device="card{dev}") == []
    (found,) = problems(tmp_path, regex, find=find, device="card{rest}")
    assert found.endswith('pattern[0].device: names the group "rest"; the groups of its regex are dev')
