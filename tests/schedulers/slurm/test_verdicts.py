"""Whether a node may take new work, from the verdicts of its devices; the reason of a drain, and whose it
is.
"""

import pytest

from nodeagent.client import Device, Kind, Reason, Verdict
from nodeagent.schedulers.slurm.verdicts import Standing, Verdicts, is_own, judge, reason
from tests.client import given

SHOWN = 20
"""Characters of a reason that ``sinfo -R`` shows."""


def test_the_code_and_the_device_stand_where_sinfo_shows_them() -> None:
    assert reason("80E18005", "npu3", 0, 4711) == "80E18005 npu3 (nodeagent #4711)"
    assert reason("80E18005", "npu3", 0, 4711)[:SHOWN] == "80E18005 npu3 (nodea"
    assert reason("XID_79", "gpu0", 7, 12) == "XID_79 gpu0 +7 (nodeagent #12)"


@pytest.mark.parametrize(
    "code", ["80E18005", "", "a code\nof two lines", "'; reboot #", "\N{SNOWMAN}" * 300, "(nodeagent #1)"]
)
def test_whatever_the_code_is_the_reason_is_one_plain_line_and_our_own(code: str) -> None:
    made = reason(code, "npu3", 0, 7)
    assert is_own(made)
    assert made.isascii()
    assert made.isprintable()
    assert not set(made) & set("'\"\\;")
    assert len(made) <= 160


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cable is changed",
        "Not responding",
        "see (nodeagent #7) above",
        "new board, see 80E18005 npu3 (nodeagent #7)",
        "80E18005 npu3",
        "(nodeagent #x)",
    ],
)
def test_any_other_reason_is_anothers(text: str) -> None:
    assert not is_own(text)


def device(name: str, verdict: Verdict, *reasons: Reason, kind: Kind = Kind.CHIP) -> Device:
    return given.device(name, verdict, reasons=reasons, kind=kind)


def why(kind: str, code: str = "") -> Reason:
    return Reason(kind=kind, id="1", code=code, level=None, text="")


NODE = device("node", Verdict.ALLOW, kind=Kind.NODE)


def test_a_node_is_well_when_it_and_every_chip_takes_work() -> None:
    assert judge([NODE, device("npu0", Verdict.ALLOW)]) == Verdicts(standing=Standing.WELL)


@pytest.mark.parametrize("verdict", [Verdict.NO_NEW_JOBS, Verdict.ISOLATE])
def test_one_chip_without_new_work_makes_it_bad(verdict: Verdict) -> None:
    shut = device("npu1", verdict, why("condition", "80E18005"))
    assert judge([NODE, device("npu0", Verdict.ALLOW), shut]) == Verdicts(
        standing=Standing.BAD, code="80E18005", device="npu1"
    )


def test_the_strictest_is_named_and_the_others_are_counted() -> None:
    devices = [
        device("npu0", Verdict.NO_NEW_JOBS, why("condition", "A")),
        device("npu1", Verdict.ISOLATE, why("hold"), why("condition", "B")),
        device("npu2", Verdict.ISOLATE, why("condition", "C")),
    ]
    assert judge([NODE, *devices]) == Verdicts(standing=Standing.BAD, code="B", device="npu1", others=2)


def test_a_hold_without_a_code_is_named_by_its_kind() -> None:
    found = judge([NODE, device("npu0", Verdict.ISOLATE, why("hold"))])
    assert (found.code, found.device) == ("hold", "npu0")


def test_what_is_bad_is_bad_beside_what_is_unknown_and_unknown_is_never_well() -> None:
    silent = device("npu0", Verdict.UNKNOWN)
    assert judge([NODE, silent]).standing is Standing.UNKNOWN
    assert judge([NODE, silent, device("npu1", Verdict.ISOLATE)]).standing is Standing.BAD


def test_a_port_counts_for_nothing_beside_the_node() -> None:
    assert judge([NODE, device("eth0", Verdict.ISOLATE, kind=Kind.LINK)]).standing is Standing.WELL


def test_a_part_that_no_driver_lists_counts_for_nothing_beside_the_node() -> None:
    """A record of the firmware has named it: it is of the kind of the node, and nobody reads it."""
    assert judge([NODE, device("0000:5e:00.0", Verdict.UNKNOWN, kind=Kind.NODE)]).standing is Standing.WELL


def test_a_node_of_which_nothing_is_said_is_unknown() -> None:
    assert judge([]).standing is Standing.UNKNOWN
