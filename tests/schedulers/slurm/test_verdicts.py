"""Whether a node may take new work, from the verdicts of its devices; the reason of a drain, and whose it
is.
"""

import pytest

from nodeagent.client import Device, Kind, Level, Reason, Verdict
from nodeagent.schedulers.slurm.verdicts import DrainCause, Standing, Verdicts, comment, is_own, judge, reason
from tests.client import given

SHOWN = 20
"""Characters of a reason that ``sinfo -R`` shows."""


def of(code: str, device: str = "npu3", *, is_held: bool = False) -> DrainCause:
    return DrainCause(device=device, code=code, is_held=is_held)


def test_sinfo_shows_the_prefix_the_code_and_the_device() -> None:
    assert reason([of("80E18005")], 4711) == "NA:80E18005 npu3 (nodeagent #4711)"
    assert reason([of("80E18005")], 4711)[:SHOWN] == "NA:80E18005 npu3 (no"
    assert reason([of("80E18005"), *[of("A", "npu1")] * 7], 1)[:SHOWN] == "NA:80E18005 npu3 +7 "
    assert reason([of("80E18005")], 0) == "NA:80E18005 npu3 (nodeagent)"


def test_devices_that_are_only_held_for_a_reset_are_not_counted() -> None:
    held = [of("hold", f"npu{number}", is_held=True) for number in range(7)]
    assert reason([of("80E18005"), of("A", "npu7"), *held], 7) == "NA:80E18005 npu3 +1 (nodeagent #7)"


@pytest.mark.parametrize(
    "code", ["80E18005", "", "a code\nof two lines", "'; reboot #", "\N{SNOWMAN}" * 300, "(nodeagent #1)"]
)
def test_whatever_the_code_is_the_reason_is_one_plain_line_and_our_own(code: str) -> None:
    made = reason([of(code)], 7)
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
        "NA: 80E18005 npu3 (nodeagent #7)",
        "NA:80E18005 npu3",
    ],
)
def test_any_other_reason_is_anothers(text: str) -> None:
    assert not is_own(text)


@pytest.mark.parametrize("text", ["80E18005 npu3 (nodeagent #7)", "hold npu0 +7 (nodeagent #0)"])
def test_the_reason_of_an_earlier_version_is_our_own(text: str) -> None:
    assert is_own(text)


def device(name: str, verdict: Verdict, *reasons: Reason, kind: Kind = Kind.CHIP) -> Device:
    return given.device(name, verdict, reasons=reasons, kind=kind)


def why(kind: str, code: str = "", level: Level | None = None, text: str = "") -> Reason:
    return Reason(kind=kind, id="1", code=code, level=level, text=text)


NODE = device("node", Verdict.ALLOW, kind=Kind.NODE)


def test_a_node_is_well_when_it_and_every_chip_takes_work() -> None:
    assert judge([NODE, device("npu0", Verdict.ALLOW)]).standing is Standing.WELL


@pytest.mark.parametrize("verdict", [Verdict.NO_NEW_JOBS, Verdict.ISOLATE])
def test_one_chip_without_new_work_makes_it_bad(verdict: Verdict) -> None:
    shut = device("npu1", verdict, why("condition", "80E18005"))
    found = judge([NODE, device("npu0", Verdict.ALLOW), shut])
    assert (found.standing, named(found)) == (Standing.BAD, [("80E18005", "npu1")])


def named(verdicts: Verdicts) -> list[tuple[str, str]]:
    return [(each.code, each.device) for each in verdicts.faults]


def test_the_strictest_comes_first_and_of_equals_the_first_device() -> None:
    devices = [
        device("npu0", Verdict.NO_NEW_JOBS, why("condition", "A", Level.RESTART_NPU)),
        device("npu1", Verdict.ISOLATE, why("hold"), why("condition", "B", Level.RESTART_NPU)),
        device("npu2", Verdict.ISOLATE, why("condition", "C", Level.RESTART_NPU)),
        device("npu3", Verdict.ISOLATE, why("condition", "D", Level.SEPARATE_NPU)),
    ]
    found = judge([NODE, *devices])
    assert named(found) == [("D", "npu3"), ("B", "npu1"), ("C", "npu2"), ("A", "npu0")]


def test_of_eight_chips_that_are_reset_together_the_one_that_failed_is_named() -> None:
    held = why("hold", text="nodeagent: reset pending: npu0, npu1")
    chips = [device(f"npu{number}", Verdict.ISOLATE, held) for number in range(8)]
    chips[3] = device("npu3", Verdict.ISOLATE, held, why("condition", "80E18005", Level.RESTART_NPU))
    chips[5] = device("npu5", Verdict.ISOLATE, held, why("condition", "A", Level.NOT_HANDLE))
    found = judge([NODE, *chips])
    assert reason(found.faults, 28) == "NA:80E18005 npu3 (nodeagent #28)"
    assert comment(found.faults) == (
        "nodeagent: 80E18005 npu3, held for a reset: npu0 npu1 npu2 npu4 npu5 npu6 npu7"
    )


def test_a_hold_of_a_person_comes_before_one_for_a_reset_and_after_a_fault() -> None:
    by_person = device("npu7", Verdict.ISOLATE, why("hold", text="ann: cable"))
    for_reset = device("npu0", Verdict.ISOLATE, why("hold", text="nodeagent: reset pending: npu0, npu1"))
    assert named(judge([NODE, for_reset, by_person])) == [("hold", "npu7"), ("hold", "npu0")]
    fault = device("npu1", Verdict.NO_NEW_JOBS, why("condition", "A", Level.RESTART_NPU))
    assert named(judge([NODE, for_reset, by_person, fault]))[0] == ("A", "npu1")


def test_a_hold_without_a_code_is_named_by_its_kind() -> None:
    assert named(judge([NODE, device("npu0", Verdict.ISOLATE, why("hold"))])) == [("hold", "npu0")]


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
