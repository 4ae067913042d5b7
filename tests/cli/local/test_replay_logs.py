"""A kernel log is understood in every form in which people keep it."""

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeagent.cli.shared.texts import counted
from tests.cli.conftest import Nodeagent, Replay, events_of

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
RAISED = "raised 0000:3b:00.0 XID_79 SeparateNPU ISOLATE RESCHEDULE"

FORMS = {
    "dmesg": (f"[ 3600.500000] {XID}", "1970-01-01T01:00:00.500000Z"),
    "dmesg with the caller": (f"[ 3600.500000][  T123] {XID}", "1970-01-01T01:00:00.500000Z"),
    "dmesg -d": (f"[ 3600.500000 <    0.000012>] {XID}", "1970-01-01T01:00:00.500000Z"),
    "dmesg -r": (f"<3>[ 3600.500000] {XID}", "1970-01-01T01:00:00.500000Z"),
    "dmesg -x": (f"kern  :err   : [ 3600.500000] {XID}", "1970-01-01T01:00:00.500000Z"),
    "dmesg -T": (f"[Fri Jan  2 03:04:05 2026] {XID}", "03:04:05.000000Z"),
    "dmesg -e": (f"[Jan 2 03:04] {XID}", "03:04:00.000000Z"),
    "dmesg iso": (f"2026-01-02T03:04:05,123456+00:00 {XID}", "03:04:05.123456Z"),
    "dmesg iso elsewhere": (f"2026-01-02T05:04:05,123456+02:00 {XID}", "03:04:05.123456Z"),
    "dmesg -t": (XID, "1970-01-01T00:00:00.000000Z"),
    "syslog": (f"Jan  2 03:04:05 gpu-17 kernel: [ 3600.500000] {XID}", "03:04:05.000000Z"),
    "syslog with ISO times": (f"2026-01-02T03:04:05.123456+00:00 gpu-17 kernel: {XID}", "03:04:05.123456Z"),
    "syslog without its host": (f"Jan  2 03:04:05  kernel: {XID}", "03:04:05.000000Z"),
    "journalctl": (f"Jan 02 03:04:05 gpu-17 kernel: {XID}", "03:04:05.000000Z"),
    "journalctl short-precise": (f"Jan 02 03:04:05.123456 gpu-17 kernel: {XID}", "03:04:05.123456Z"),
    "journalctl short-iso": (f"2026-01-02T03:04:05+0000 gpu-17 kernel: {XID}", "03:04:05.000000Z"),
    "journalctl short-full": (f"Fri 2026-01-02 03:04:05 UTC gpu-17 kernel: {XID}", "03:04:05.000000Z"),
    "journalctl short-unix": (f"1767323045.123456 gpu-17 kernel: {XID}", "03:04:05.123456Z"),
    "journalctl short-monotonic": (f"[ 3600.500000] gpu-17 kernel: {XID}", "1970-01-01T01:00:00.500000Z"),
    "journalctl json": (
        json.dumps({"__REALTIME_TIMESTAMP": "1767323045123456", "_TRANSPORT": "kernel", "MESSAGE": XID}),
        "03:04:05.123456Z",
    ),
    "/dev/kmsg": (f"3,17,3600500000,-;{XID}", "1970-01-01T01:00:00.500000Z"),
}


@pytest.mark.parametrize(("line", "at"), FORMS.values(), ids=FORMS)
def test_a_line_is_understood_with_its_time(replay: Replay, tmp_path: Path, line: str, at: str) -> None:
    (tmp_path / "replayed").touch()

    assert events_of(replay([line])) == [f"{at} {RAISED}"]


@pytest.mark.parametrize(
    "text",
    ["root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/bin/sh\n", "usb 1-1: new device\n", "1,2,;\n[31]\n"],
    ids=["passwd", "dmesg -t without a fault", "nearly"],
)
@pytest.mark.parametrize("compared", [False, True])
def test_a_file_that_is_no_log_is_reported_not_to_be_understood(
    nodeagent: Nodeagent, tmp_path: Path, text: str, compared: bool
) -> None:
    """An empty output alone would say that all was well."""
    (tmp_path / "file").write_text(text)
    (tmp_path / "tables").mkdir()
    ran = nodeagent("replay", tmp_path / "file", *(["--compare", tmp_path / "tables"] if compared else []))
    count = len(text.splitlines())
    none = f"0 kernel messages understood, 0 of others, {count} not understood (first: line 1)"
    assert (ran.status, ran.out) == (3, "no difference\n" if compared else "")
    assert ran.err.splitlines() == [
        "note: most lines are in no form that is known; --help lists the forms, --format names one",
        f"{tmp_path}/file: {counted(count, 'line')} read, {none}, 0 faults found",
    ]


@pytest.mark.parametrize(
    "line",
    [
        f"Jan  2 03:04:05 gpu-17 logger: {XID}",
        json.dumps({"__REALTIME_TIMESTAMP": "1767323045123456", "_TRANSPORT": "syslog", "MESSAGE": XID}),
    ],
    ids=["syslog", "journal"],
)
def test_what_another_program_logged_is_not_the_kernels(replay: Replay, line: str) -> None:
    assert events_of(replay([line])) == []


@pytest.mark.parametrize(
    "line",
    [
        f"11,17,3600500000,-;{XID}",
        f"user  :err   : [ 3600.500000] {XID}",
        json.dumps({"__REALTIME_TIMESTAMP": "3600500000", "SYSLOG_FACILITY": "1", "MESSAGE": XID}),
    ],
    ids=["/dev/kmsg", "dmesg -x", "journal"],
)
def test_what_user_space_wrote_to_the_log_is_a_notice_unless_it_is_trusted(replay: Replay, line: str) -> None:
    at = "1970-01-01T01:00:00.500000Z"

    assert events_of(replay([line])) == [f"{at} notice 0000:3b:00.0 XID_79 SeparateNPU ALLOW NONE"]
    assert events_of(replay([line], "", "--trust-userspace")) == [f"{at} {RAISED}"]


def test_seconds_since_boot_count_from_the_boot_time_given(replay: Replay) -> None:
    ran = replay([f"[ 3600.500000] {XID}"], "", "--boot-time", "2026-01-02T01:00:00Z")

    assert events_of(ran) == [f"02:00:00.500000Z {RAISED}"]


def test_a_date_without_a_year_lies_before_the_end_of_the_file(nodeagent: Nodeagent, tmp_path: Path) -> None:
    file = tmp_path / "messages"
    file.write_text(f"Dec 31 23:59:59 gpu-17 kernel: {XID}\n")
    written_s = 1767323045
    os.utime(file, (written_s, written_s))

    assert [event["at"] for event in nodeagent("replay", file, "-o", "json").json] == [
        "2025-12-31T23:59:59.000000Z"
    ]


def test_a_line_without_a_time_happened_with_the_one_before(replay: Replay) -> None:
    lines = ["[Fri Jan  2 03:04:05 2026] something else", XID]

    assert events_of(replay(lines)) == [f"03:04:05.000000Z {RAISED}"]


def test_time_goes_on_to_the_end_of_the_log_and_no_further(replay: Replay) -> None:
    out_of_memory = "Out of memory: Killed process 1234 (python) total-vm:1kB"
    lines = [f"[  100.000000] {out_of_memory}", "[  700.000000] idle"]
    raised = "1970-01-01T00:01:40.000000Z raised node OOM NotHandleFault ALLOW NONE"

    assert events_of(replay(lines)) == [raised]
    assert events_of(replay([*lines, "[  700.000001] idle"])) == [
        raised,
        "1970-01-01T00:11:40.000000Z cleared node OOM NotHandleFault ALLOW NONE",
    ]


def test_a_packed_log_is_unpacked(nodeagent: Nodeagent, tmp_path: Path) -> None:
    file = tmp_path / "kern.log.gz"
    file.write_bytes(gzip.compress(f"[ 3600.500000] {XID}\n".encode()))

    assert events_of(nodeagent("replay", file, "-o", "json")) == [f"1970-01-01T01:00:00.500000Z {RAISED}"]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [""],
        ["[    3.600000] nothing of note"],
        ["<6>nothing of note"],
        ["Jan  2 03:04:05 here cron: done"],
    ],
    ids=["empty", "blank", "harmless", "without times", "of other programs"],
)
def test_a_log_without_faults_tells_nothing(replay: Replay, lines: Sequence[str]) -> None:
    assert events_of(replay(lines)) == []


def test_gpus_that_fail_together_are_correlated_though_the_link_of_one_was_reported_of_first(
    replay: Replay,
) -> None:
    """Else the one would be a link, alone of its kind, and both be taken out for a fault of their job."""
    corrected = "nvidia 0000:17:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"
    halted = "NVRM: Xid (PCI:0000:{bus}:00): 62, pid=1234, name=python, 32a3(2f58) 00000000 00000000"
    lines = [f"[  100.000000] {corrected}"]
    for at_s in (3600, 7200, 10_800):
        lines += [f"[{at_s + chip}.000000] {halted.format(bus=bus)}" for chip, bus in enumerate(("17", "18"))]
    judged = [line for line in events_of(replay(lines)) if "suppressed" in line or "promoted" in line]
    assert [line.split()[1:3] for line in judged] == [
        ["suppressed", "0000:17:00.0"],
        ["suppressed", "0000:18:00.0"],
    ]
