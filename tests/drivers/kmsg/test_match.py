"""Which pattern a line matches, and the code, device and groups that this gives."""

import pytest

from nodeagent.core.model import Assertion
from nodeagent.drivers.kmsg.match import Match, Matcher, device_name
from nodeagent.wire import Pattern


def pattern(regex: str, number: int = 0, code: str = "X", device: str = "node") -> Pattern:
    return Pattern(id=f"P{number}", code=code, regex=regex, device=device)


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
    counted = pattern(r"memory: (?P<count>.+) errors? corrected")
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
    matcher = Matcher([XID, bare])
    assert matcher.match(lines) == [None] * len(lines)
    assert [found and found.code for found in matcher.match([*lines, lines[2][7:]])][-1] == "XID_79"


def test_a_line_that_continues_another_is_taken_only_of_a_driver_that_writes_so() -> None:
    joined = Pattern(id="J", code="J", regex="^NVRM: (?P<text>.*)", device="node", continuation=True)
    line = "NVRM: Xid (PCI:0000:3b:00): 79"
    found = Matcher([XID, joined]).match([line, line], continued={1})
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
        (pattern("(unclosed"), r"pattern P0: not a regular expression of RE2: missing \)"),
        (
            Pattern(id="P0", code="X", regex="x", unless="(?!y)", device="node"),
            r"pattern P0: not a regular expression of RE2: invalid perl operator: \(\?!",
        ),
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


def test_a_line_that_unless_matches_is_left_to_the_patterns_behind() -> None:
    disk = Pattern(
        id="DISK", code="DISK", regex=r"^I/O error, dev (?P<dev>\w+)", unless="^.*dev sr", device="node"
    )
    other = pattern("^I/O error", code="OTHER")
    lines = ["I/O error, dev sda", "I/O error, dev sr0", "I/O error, dev x: was dev sr"]
    assert [m and m.code for m in Matcher([disk, other]).match(lines)] == ["DISK", "OTHER", "OTHER"]


FOUND = Pattern(
    id="F",
    code="F",
    regex=r"^acme <(?P<program>.{0,15})> (?P<rest>.* failed.*)",
    find=r"\bdev=(?P<dev>\d+)\b",
    device="npu{dev}",
)


@pytest.mark.parametrize(
    ("line", "device", "groups"),
    [
        ("acme <a> copy failed, dev=3", "npu3", {"program": "a", "dev": "3"}),
        ("acme <a> dev=3: copy failed, dev=4", "npu3", {"program": "a", "dev": "3"}),
        ("acme <dev=7> copy failed, dev=4", "npu4", {"program": "dev=7", "dev": "4"}),
        ("acme <dev=7> copy failed", "node", {"program": "dev=7"}),
        ("acme <a> copy failed\ndev=4", "node", {"program": "a"}),
    ],
)
def test_find_adds_groups_from_the_rest_of_the_line_and_from_nowhere_else(
    line: str, device: str, groups: dict[str, str]
) -> None:
    (match,) = Matcher([FOUND]).match([line])
    assert match is not None
    assert (match.device, match.groups) == (device, groups)


def test_characters_beyond_ascii_are_matched_and_shown_as_they_are() -> None:
    named = pattern("^task (?P<task>.{4}) died: (?P<text>.*)")
    (match,) = Matcher([named]).match(["task \u00e9\u2713ab died: \\xff \U0001f600"])
    assert match is not None
    assert match.groups == {"task": "\u00e9\u2713ab", "text": "\\xff \U0001f600"}


def test_a_line_with_half_a_character_pair_is_matched() -> None:
    """JSON can hold such text, and a log that is replayed may."""
    assert [m and m.code for m in Matcher([pattern("^lost: .")]).match(["lost: \ud800"])] == ["X"]


def test_the_end_is_that_of_the_message() -> None:
    end = pattern("^link down$")
    assert [m and m.code for m in Matcher([end]).match(["link down", "link down\n", "link down\nup"])] == [
        "X",
        None,
        None,
    ]
