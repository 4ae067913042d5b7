"""Logs as people paste them into reports: each fault in them is found, and what was understood is counted.

Kernel logs that people have put into reports are judged as an engineer of the field would judge them.

Errors that were put into a real kernel's hardware have the right device, code and level.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import REPLAYED, ROOT, Nodeagent, Ran, Replay

LOGS: list[dict[str, Any]] = tomllib.loads((ROOT / "tests/fixtures/replay/reports.toml").read_text())["log"]
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."


def faults_of(ran: Ran) -> list[str]:
    return sorted(
        {f"{event['device']} {event['code']}" for event in ran.json if event["kind"] in ("raised", "notice")}
    )


def counts_of(ran: Ran) -> tuple[int, ...]:
    """Of the last line: read, understood, of others, not understood, which is the first, faults."""
    found = REPLAYED.fullmatch(ran.err.splitlines()[-1])
    assert found is not None
    return tuple(int(count or 0) for count in found.groups())


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log["name"])
def test_each_fault_of_a_pasted_log_is_found(replay: Replay, log: dict[str, Any]) -> None:
    lines = log["text"].splitlines()
    ran = replay(lines)

    assert (ran.status, faults_of(ran)) == (0, log["faults"])
    assert counts_of(ran) == (len(lines), len(lines), 0, 0, 0, len(log["faults"]))


def test_the_last_line_counts_what_was_understood_and_names_the_first_that_was_not(replay: Replay) -> None:
    ran = replay(
        [
            f"Mar 11 03:11:09 n1 kernel: {XID}",
            "",
            "Mar 11 03:11:10 n1 sshd[12]: Accepted publickey",
            "11-03-25 03h11 n1 kernel: what form is this",
            "at 03:11:12: nor is this one",
        ]
    )

    assert (ran.status, faults_of(ran)) == (0, ["0000:3b:00.0 XID_79"])
    counts = "4 lines read, 1 kernel message understood, 1 of others, 2 not understood (first: line 4)"
    assert ran.err.splitlines()[-1].endswith(f"/replayed: {counts}, 1 fault found")


@pytest.mark.parametrize(("unread", "status"), [(1, 0), (2, 0), (3, 3)])
def test_the_status_shows_whether_more_than_half_was_not_understood(
    replay: Replay, unread: int, status: int
) -> None:
    ran = replay(["[   12.3] text"] * 2 + ["at 03:11:12: text"] * unread)

    assert ran.status == status


def test_events_are_shown_though_most_was_not_understood(replay: Replay) -> None:
    ran = replay([f"[   12.3] {XID}", *["at 03:11:12: text"] * 2])

    assert (ran.status, faults_of(ran)) == (3, ["0000:3b:00.0 XID_79"])


def test_lines_without_any_time_are_a_log_where_a_pattern_takes_one(replay: Replay) -> None:
    """``dmesg -t``, ``journalctl -o cat``."""
    ran = replay(["usb 1-1: new device", XID, "eth0: renamed from veth1"])

    assert (ran.status, [event["at"] for event in ran.json]) == (0, ["1970-01-01T00:00:01.000000Z"])
    assert (
        ran.err.splitlines()[0] == "note: no line bears a time: they are taken in their order, one a second"
    )
    assert counts_of(ran) == (3, 3, 0, 0, 0, 1)


def test_a_repeated_line_is_one_fault(replay: Replay) -> None:
    assert counts_of(replay([f"[   12.3] {XID}"] * 3)) == (3, 3, 0, 0, 0, 1)


def test_a_form_named_by_hand_is_taken(replay: Replay) -> None:
    ran = replay(["usb 1-1: new device"], "", "--format", "plain")

    assert (ran.status, counts_of(ran)) == (0, (1, 1, 0, 0, 0, 0))


def test_a_form_that_is_none_is_refused_with_those_that_are(replay: Replay) -> None:
    ran = replay(["text"], "", "--format", "dmesgs")

    assert ran.status == 2
    assert "'dmesgs' is not one of 'dmesg', 'dmesg-ctime'" in ran.err


def test_the_help_lists_the_forms(nodeagent: Nodeagent) -> None:
    shown = nodeagent("replay", "--help").out

    assert (
        "  euleros          2025-03-11T03:11:09.123456+08:00|err|kernel[-]|[  812.229390] message\n" in shown
    )
    assert "  talosctl         kern: warning: [2025-03-11T03:11:09.123456789Z]: message\n" in shown


def test_what_precedes_the_first_date_comes_just_before_it(replay: Replay) -> None:
    """Else a fault of 1970 would have ended by its time."""
    blocked = "INFO: task train:78808 blocked for more than 120 seconds."
    ran = replay([f"[  100.0] {blocked}", "[  160.0] idle", "2025-03-11T03:11:09Z n1 kernel: idle"])

    assert [(event["at"], event["kind"]) for event in ran.json][:1] == [
        ("2025-03-11T03:10:09.000000Z", "raised")
    ]
    assert "cleared" not in [event["kind"] for event in ran.json]


def test_a_line_that_is_too_long_is_passed_over_and_counted(replay: Replay) -> None:
    ran = replay([f"[   12.3] {XID}", "x" * 3_000_000, "[   13.3] idle"])

    assert (ran.status, faults_of(ran)) == (0, ["0000:3b:00.0 XID_79"])
    assert counts_of(ran) == (3, 2, 0, 1, 2, 1)


REPORTS: list[dict[str, Any]] = tomllib.loads((ROOT / "tests/fixtures/kernel_reports.toml").read_text())[
    "report"
]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report["name"])
def test_a_report_is_judged_as_it_is_right(
    nodeagent: Nodeagent, tmp_path: Path, report: dict[str, Any]
) -> None:
    log = tmp_path / "kern.log"
    log.write_text(report["log"].lstrip("\n"))

    ran = nodeagent("replay", log, "-o", "json")

    assert ran.status == 0, ran.err
    assert [in_words(event) for event in ran.json] == report["events"]


def in_words(event: dict[str, Any]) -> str:
    told = (event["kind"], event["device"], event["code"] or "-", event["condition_level"] or "-")
    return " ".join((*told, event["verdict"], event["handling"]))


ERRORS: list[dict[str, Any]] = tomllib.loads((ROOT / "tests/fixtures/hardware/linux-6.1.toml").read_text())[
    "error"
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error["made"])
def test_an_error_of_real_hardware_is_the_fault_that_it_is(
    nodeagent: Nodeagent, tmp_path: Path, error: dict[str, Any]
) -> None:
    log = tmp_path / "dmesg.log"
    log.write_text(error["log"].lstrip("\n"))

    ran = nodeagent("replay", log, "-o", "json")

    assert ran.status == 0
    open_faults: dict[tuple[str, str], str] = {}
    notices: set[tuple[str, str]] = set()
    for event in ran.json:
        fault = event["device"], event["code"]
        if event["kind"] == "raised":
            open_faults[fault] = event["condition_level"]
        elif event["kind"] == "cleared":
            del open_faults[fault]
        elif event["kind"] == "notice":
            notices.add(fault)
    faults = sorted([device, code, level] for (device, code), level in open_faults.items())
    assert faults == error["faults"]
    assert sorted(map(list, notices)) == error.get("notices", [])
