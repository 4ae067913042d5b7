"""Which pattern a line matches; and that the fast way finds what the plain way finds, always."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodeagent.core.model import Assertion
from nodeagent.drivers.kmsg import prefilter
from nodeagent.drivers.kmsg.match import Match, Matcher, device_name
from nodeagent.wire import Pattern

REPOSITORY = Path(__file__).parents[3]
FIELD: dict[str, Any] = tomllib.loads((REPOSITORY / "tests/fixtures/kernel_lines.toml").read_text())
SAMPLES: dict[str, Any] = tomllib.loads((REPOSITORY / "tests/fixtures/kernel_samples.toml").read_text())


def pattern(regex: str, number: int = 0, code: str = "X", device: str = "node") -> Pattern:
    return Pattern(id=f"P{number}", code=code, regex=regex, device=device)


def shipped() -> list[Pattern]:
    return [
        Pattern(
            id=p["id"], code=p["code"], unnamed=p.get("unnamed", ""), regex=p["regex"], device=p["device"]
        )
        for file in sorted((REPOSITORY / "fault_codes").glob("*.toml"))
        for p in tomllib.loads(file.read_text()).get("pattern", ())
    ]


@pytest.fixture(scope="module")
def shipped_matcher() -> Matcher:
    return Matcher(shipped())


XID = pattern(
    r"^NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]+)\): (?P<code>\d+)(?:, pid=(?P<pid>\d+))?",
    1,
    "XID_{code}",
    "pci",
)


def test_groups_make_the_code_and_the_device() -> None:
    (found,) = Matcher([XID]).match(["NVRM: Xid (PCI:0000:3B:00): 79, pid=1234, name=python"])
    assert found == Match(
        pattern="P1",
        code="XID_79",
        device="0000:3b:00.0",
        groups={"pci": "0000:3B:00", "code": "79", "pid": "1234"},
    )


def test_group_that_took_no_part_is_absent() -> None:
    (found,) = Matcher([XID]).match(["NVRM: Xid (PCI:0000:3b:00): 79"])
    assert found is not None
    assert "pid" not in found.groups


@pytest.mark.parametrize(
    ("told", "times"),
    [("262", 262), ("1", 1), ("007", 7), ("0", 1), ("many", 1), ("9" * 5000, 10**9), ("\u0663", 1)],
)
def test_a_line_counts_as_often_as_its_group_count_says(told: str, times: int) -> None:
    counted = pattern(r"memory: (?P<count>\w+) errors? corrected")
    assert [m and m.count for m in Matcher([counted]).match([f"memory: {told} errors corrected"])] == [times]


def test_a_line_whose_group_count_took_no_part_counts_once() -> None:
    counted = pattern(r"memory: (?:(?P<count>\d+) errors|error) corrected")
    found = Matcher([counted]).match(["memory: error corrected", "memory: 3 errors corrected"])
    assert [m and m.count for m in found] == [1, 3]


def test_device_is_made_of_groups_and_is_the_node_where_the_line_names_none() -> None:
    of_chip = pattern(r"fault(?: \(dev_id=(?P<dev>\d+)\))?", device="npu{dev}")
    assert [m and m.device for m in Matcher([of_chip]).match(["fault (dev_id=5)", "fault"])] == [
        "npu5",
        "node",
    ]


def test_a_line_that_names_no_device_may_have_a_code_of_its_own() -> None:
    regex = r"fault (?P<code>\d+)(?: \(dev_id=(?P<dev>\d+)\))?"
    of_chip = Pattern(id="P", code="F_{code}", unnamed="UNNAMED_{code}", regex=regex, device="npu{dev}")
    found = Matcher([of_chip]).match(["fault 7 (dev_id=5)", "fault 7"])
    assert [m and (m.code, m.device) for m in found] == [
        ("F_7", "npu5"),
        ("UNNAMED_7", "node"),
    ]


def test_line_that_says_a_fault_is_over_is_a_recovery() -> None:
    up = Pattern(id="UP", code="DOWN", regex="link is up", device="node", assertion=Assertion.RECOVER)
    found = Matcher([pattern("link is down", code="DOWN"), up]).match(["link is down", "link is up"])
    assert [(m.code, m.assertion) for m in found if m] == [
        ("DOWN", Assertion.ONCE),
        ("DOWN", Assertion.RECOVER),
    ]


def test_only_where_the_message_begins_does_a_pattern_match() -> None:
    lines = [
        "a name: NVRM: Xid (PCI:0000:3b:00): 79",
        " NVRM: Xid (PCI:0000:3b:00): 79",
        "a name\nNVRM: Xid (PCI:0000:3b:00): 79",
        "ein N\u00e4me\nNVRM: Xid (PCI:0000:3b:00): 79",
    ]
    bare = pattern(XID.regex.removeprefix("^"), code="X", device="node")
    for matcher in (Matcher([XID, bare]), Matcher([XID, bare], prefiltered=False)):
        assert matcher.match(lines) == [None] * len(lines)
        assert [found and found.code for found in matcher.match([*lines, lines[2][7:]])][-1] == "XID_79"


def test_a_line_that_continues_another_is_taken_only_of_a_driver_that_writes_so() -> None:
    joined = Pattern(id="J", code="J", regex="^NVRM: (?P<text>.*)", device="node", continuation=True)
    line = "NVRM: Xid (PCI:0000:3b:00): 79"
    for matcher in (Matcher([XID, joined]), Matcher([XID, joined], prefiltered=False)):
        found = matcher.match([line, line], continued={1})
        assert [match and match.pattern for match in found] == ["P1", "J"]


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:3b:00): 79: a.out: potentially unexpected fatal signal 11.",
        "NVRM: Xid (PCI:0000:3b:00): 79IN=eth0 OUT= MAC= SRC=10.0.0.1 DST=10.0.0.2 LEN=20",
        "NVRM: Xid (PCI:0000:3b:00): 79IN= OUT=eth0 SRC=::1 DST=::2 LEN=20",
        "NVRM: Xid (PCI:0000:3b:00): 79IN=eth0 OUT= PHYSIN=veth1 MACSRC=02:00:00:00:00:01 MACDST=",
        "NVRM: Xid (PCI:0000:3b:00): 79IN=eth0 OUT= MAC=02:00 ",
        "NVRM: Xid (PCI:0000:3b:00): 79IN=eth0 OUT= ARP HTYPE=1 PTYPE=0x0800 OPCODE=1",
        "NVRM: Xid (PCI:0000:3b:00): 79IN=sit0 OUT= MAC= TUNNEL=10.0.0.1->10.0.0.2 TRUNCATED",
        "NVRM: Xid (PCI:0000:3b:00): 79: Can't lookup blockdev",
        "NVRM: Xid (PCI:0000:3b:00): 79,mems_allowed=0,oom_memcg=/a",
        "NVRM: Xid (PCI:0000:3b:00): 79,mems_allowed=0-1,3",
    ],
)
def test_a_line_that_begins_with_a_long_name_is_nobodys(line: str) -> None:
    assert Matcher([XID]).match([line]) == [None]


def test_first_pattern_in_order_wins() -> None:
    general, special = pattern("Xid", 1), pattern("Xid 79", 2)
    assert [m and m.pattern for m in Matcher([general, special]).match(["Xid 79"])] == ["P1"]
    assert [m and m.pattern for m in Matcher([special, general]).match(["Xid 79"])] == ["P2"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("0000:3b:00.0", "0000:3b:00.0"),
        ("0000:3B:00", "0000:3b:00.0"),
        ("3b:00.1", "0000:3b:00.1"),
        ("00000000:3b:00.0", "0000:3b:00.0"),
        ("00010000:3b:00.0", "10000:3b:00.0"),
        ("mlx5_0", "mlx5_0"),
        ("two words", "two_words"),
        ("", "node"),
    ],
)
def test_device_has_one_name_however_it_is_written(text: str, name: str) -> None:
    assert device_name(text) == name


def test_code_made_of_what_a_process_wrote_is_a_name() -> None:
    (found,) = Matcher([pattern(r"oom (?P<who>.*)", code="OOM_{who}")]).match(
        ["oom evil \x1b[31m" + "x" * 500]
    )
    assert found is not None
    assert found.code.startswith("OOM_evil_[31mxxx")
    assert len(found.code) == 128


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (pattern("(unclosed"), "pattern P0: missing \\), unterminated subpattern"),
        (pattern("x", code="X_{code}"), "pattern P0: no group named code"),
        (pattern("x", device="pci"), "pattern P0: no group named pci"),
        (
            Pattern(id="P0", code="X", unnamed="U_{code}", regex="x(?P<n>1)", device="n"),
            "pattern P0: no group named code",
        ),
    ],
)
def test_pattern_that_cannot_work_is_named(bad: Pattern, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Matcher([bad])


def test_without_hyperscan_the_answers_are_the_same(
    shipped_matcher: Matcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorts = ("of_the_field", "of_the_formats", "near")
    lines = [line["text"] for line in FIELD["line"]] + SAMPLES["nothing"]
    lines += [text for sort in sorts for text, *_ in SAMPLES[sort]]
    fast = shipped_matcher.match(lines)
    monkeypatch.setattr(prefilter, "hyperscan", None)
    assert Matcher(shipped()).match(lines) == fast


def test_shipped_patterns_all_have_a_filter(shipped_matcher: Matcher) -> None:
    prefilter = shipped_matcher._filter
    assert prefilter is not None
    assert prefilter.unfiltered == []


@pytest.mark.parametrize("line", FIELD["line"], ids=lambda line: line["text"][:50])
def test_line_from_the_field_is_found(shipped_matcher: Matcher, line: dict[str, Any]) -> None:
    (found,) = shipped_matcher.match([line["text"]])
    assert found is not None
    assert (found.pattern, found.code) == (line["pattern"], line["code"])


# --------------------------------------------------------------------------- the fast equals the plain

ATOMS = st.sampled_from(
    [
        *"abcXé .\\-",
        *(r"\d", r"\w", r"\s", r"\S", r"\W", r"\b", r"\B", "^", "$", r"\A", r"\Z", r"\.", "[a-c]", "[^b]"),
        *(
            "(?i:x)",
            "(?=b)",
            "(?!b)",
            "(?<=a)",
            "(?<!a)",
            "[[:alpha:]]",
            "(?>a+)",
            r"\x41",
            r"\101",
            r"\n",
            r"\t",
        ),
    ]
)
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "*?", "{2}", "{1,2}", "{,2}", "++"])
LINES = st.text(alphabet="aabbcxXA 0_-.\\é\t\n\x1c\x0b ", max_size=12)


@st.composite
def regexes(draw: st.DrawFn) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        atom = draw(ATOMS)
        if draw(st.booleans()):
            atom = f"(?:{atom}|{draw(ATOMS)})"
        parts.append(atom + draw(REPEATS))
    regex = "".join(parts)
    if draw(st.integers(0, 9)) == 0:
        regex = f"(?P<g>{regex})-(?P=g)"
    return draw(st.sampled_from(["", "", "", "(?i)", "(?s)", "(?x)", "(?a)"])) + regex


def compiles(regex: str) -> bool:
    try:
        re.compile(regex)
    except re.error:
        return False
    return True


@settings(max_examples=300, deadline=None)
@given(st.lists(regexes().filter(compiles), min_size=1, max_size=6), st.lists(LINES, min_size=1, max_size=6))
@example(["a{,2}b"], ["b", "ab"])
@example([r"\Aa", "b$", "^c"], ["xa", "a", "b", "c"])
@example(["é?a"], ["a"])
@example([r"a\sb"], ["a\x1cb"])
@example(["[^x]b"], ["a", "b", "bb"])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_fast_matcher_equals_plain_re(regexes: list[str], lines: list[str]) -> None:
    patterns = [pattern(regex, number) for number, regex in enumerate(regexes)]
    expected = [next((p.id for p in patterns if re.match(p.regex, line)), None) for line in lines]
    assert [found and found.pattern for found in Matcher(patterns).match(lines)] == expected
    assert [
        found and found.pattern for found in Matcher(patterns, prefiltered=False).match(lines)
    ] == expected
