"""What ``journalctl -o export`` makes is understood with its binary fields; damage is named by its place."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Nodeagent, Ran, events_of

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
RAISED = "03:04:05.123456Z raised 0000:3b:00.0 XID_79 SeparateNPU ISOLATE RESCHEDULE"
FORGED = "03:04:05.123456Z notice 0000:3b:00.0 XID_79 SeparateNPU ALLOW NONE"

Export = Callable[[bytes], Ran]


def binary(name: str, data: bytes) -> bytes:
    return name.encode() + b"\n" + len(data).to_bytes(8, "little") + data + b"\n"


def entry(message: bytes = b"MESSAGE=" + XID.encode() + b"\n", transport: str = "kernel") -> bytes:
    return (
        b"__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1767323045123456\n__MONOTONIC_TIMESTAMP=3600500000\n"
        + f"_TRANSPORT={transport}\nSYSLOG_FACILITY=0\nPRIORITY=3\n".encode()
        + message
        + b"_HOSTNAME=gpu-17\n\n"
    )


@pytest.fixture
def export(nodeagent: Nodeagent, tmp_path: Path) -> Export:
    def run(content: bytes) -> Ran:
        file = tmp_path / "exported"
        file.write_bytes(content)
        return nodeagent("replay", file, "-o", "json")

    return run


def test_an_entry_is_a_line_of_the_kernel_log_at_its_time(export: Export) -> None:
    assert events_of(export(entry(b"MESSAGE=nothing\n") + entry())) == [RAISED]


def test_a_binary_field_may_hold_what_ends_other_fields_and_entries(export: Export) -> None:
    blob = binary("_BLOB", b"x\n\n__CURSOR=none\n\n\0\xff")

    assert events_of(export(entry(blob + binary("MESSAGE", XID.encode())))) == [RAISED]


def test_a_message_of_several_lines_is_one_message(export: Export) -> None:
    ran = export(entry(binary("MESSAGE", f"{XID}\nlast".encode())))

    assert events_of(ran) == [RAISED]
    assert ran.json[0]["evidence"]["line"].endswith("fallen off the bus.\\x0alast")


def test_a_line_within_a_message_begins_none(export: Export) -> None:
    assert events_of(export(entry(binary("MESSAGE", f"first\n{XID}".encode())))) == []


def test_entries_across_the_bounds_of_what_is_read_at_once_are_whole(export: Export) -> None:
    noise = entry(b"MESSAGE=" + b"y" * 700 + b"\n") + entry(binary("MESSAGE", b"z\n" * 300))

    assert events_of(export(noise * 1000 + entry())) == [RAISED]


def test_a_large_field_that_no_one_wants_is_passed_over(export: Export) -> None:
    assert events_of(export(entry(binary("COREDUMP", b"\n\0" * 2_000_000)) + entry())) == [RAISED]


def test_the_last_entry_needs_no_empty_line_after_it(export: Export) -> None:
    assert events_of(export(entry()[:-1])) == [RAISED]


def test_what_another_program_logged_is_not_the_kernels(export: Export) -> None:
    assert events_of(export(entry(transport="syslog"))) == []


def test_what_user_space_wrote_to_the_log_is_a_notice(export: Export) -> None:
    assert events_of(export(entry().replace(b"FACILITY=0", b"FACILITY=1"))) == [FORGED]


def test_a_packed_export_is_unpacked(export: Export) -> None:
    assert events_of(export(gzip.compress(entry()))) == [RAISED]


LENGTH = len(entry())
DAMAGED = {
    "cut within text": (
        entry()[:-5],
        f"entry 2, byte {2 * LENGTH - len('_HOSTNAME=gpu-17') - 2}: the file ends",
    ),
    "cut within data": (
        entry(binary("MESSAGE", b"x" * 100))[:-60],
        "MESSAGE: the file ends within its data",
    ),
    "wrong length": (
        entry(binary("MESSAGE", b"x" * 100).replace(b"d\0\0", b"c\0\0")),
        "MESSAGE: no newline after its 99 bytes",
    ),
    "length beyond all bounds": (
        entry(b"MESSAGE\n" + b"\xff" * 8 + b"x\n"),
        f"MESSAGE: {2**64 - 1} bytes long; at most 1048576 are read",
    ),
    "no field": (entry(b"what is this?\n"), "b'what is this?': must be a field such as MESSAGE=text"),
    "no time": (
        entry().replace(b"__REALTIME", b"__OTHER"),
        f"entry 2, byte {LENGTH}: __REALTIME_TIMESTAMP: None: must be microseconds since 1970",
    ),
}


@pytest.mark.parametrize(("content", "reason"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named_by_entry_and_byte_and_nothing_is_shown(
    export: Export, tmp_path: Path, content: bytes, reason: str
) -> None:
    ran = export(entry() + content)

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"nodeagent: {tmp_path}/exported: entry 2, byte ")
    assert reason in ran.err


def test_a_line_without_end_is_not_kept_in_memory(export: Export) -> None:
    ran = export(entry() + b"MESSAGE=" + b"x" * 3_000_000)

    assert (ran.status, ran.out) == (1, "")
    assert "a line longer than 1048576 bytes" in ran.err


def test_a_file_of_the_journal_itself_that_is_damaged_is_refused(export: Export, tmp_path: Path) -> None:
    ran = export(b"LPKSHHRH" + bytes(100))

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"nodeagent: {tmp_path}/exported: journalctl: ")


def test_a_file_of_the_journal_itself_is_refused_with_the_way_to_go_where_journalctl_is_not_installed(
    export: Export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = export(b"LPKSHHRH" + bytes(100))

    assert (ran.status, ran.out) == (1, "")
    assert "a file of the journal itself: replay what journalctl -o export makes of it" in ran.err
