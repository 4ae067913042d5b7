"""The kernel logs in a folder, an archive or a bug report are found, and what several hold is one line."""

import gzip
import io
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nodeagent.replay.collection import HOLDINGS, chosen, rank_of
from tests.cli.conftest import Nodeagent, Ran, configuration, nodeagent

__all__ = ["configuration", "nodeagent"]

XID = "NVRM: Xid (PCI:0000:{bus}:00): 79, pid=1, name=x, GPU has fallen off the bus."
ONE, TWO, THREE = (XID.format(bus=bus) for bus in ("1a", "2b", "3c"))
WRITTEN_S = int(datetime(2025, 3, 12, tzinfo=UTC).timestamp())

SOSREPORT = {
    "sos_commands/logs/journalctl_--no-pager": f"-- Logs begin --\nMar 11 03:11:09 n1 kernel: {ONE}\n",
    "sos_commands/logs/journalctl_--no-pager_--boot": f"Mar 11 03:11:09 n1 kernel: {ONE}\n",
    "sos_commands/logs/journalctl_--disk-usage": "Archived and active journals take up 1.0G.\n",
    "sos_commands/kernel/dmesg": f"[  100.0] {ONE}\n[  160.0] {TWO}\n",
    "sos_commands/kernel/dmesg_-T": f"[Tue Mar 11 03:11:09 2025] {ONE}\n[Tue Mar 11 03:12:09 2025] {TWO}\n",
    "var/log/messages": f"Mar 11 03:11:09 n1 kernel: {ONE}\nMar 11 03:11:10 n1 sshd[1]: text\n",
    "var/log/messages-20250311": f"Mar 10 01:00:00 n1 kernel: {THREE}\n",
    "etc/syslog.conf": "*.* /var/log/messages\n",
    "proc/cpuinfo": f"[  100.0] {XID.format(bus='4d')}\n",
}

Files = Mapping[str, str]


def folder(files: Files, path: Path) -> Path:
    for name, text in files.items():
        file = path / "report" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (WRITTEN_S, WRITTEN_S))
    os.mkfifo(path / "report" / "kern.log")
    (path / "report" / "dmesg.0").symlink_to("sos_commands/kernel/dmesg")
    return path / "report"


def tar(files: Files, path: Path, mode: str = "w") -> Path:
    with tarfile.open(path / "report.tar", mode) as archive:  # type: ignore[call-overload]
        for name, text in files.items():
            info = tarfile.TarInfo(f"sosreport-n1/{name}")
            info.size, info.mtime = len(text.encode()), WRITTEN_S
            archive.addfile(info, io.BytesIO(text.encode()))
    return path / "report.tar"


def tar_by_zstd(files: Files, path: Path) -> Path:
    subprocess.run(["zstd", "-q", tar(files, path), "-o", path / "report.tar.zst"], check=True)
    return path / "report.tar.zst"


def zip_of(files: Files, path: Path) -> Path:
    with zipfile.ZipFile(path / "report.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2025, 3, 12, 0, 0, 0)), text)
    return path / "report.zip"


HOLDERS: dict[str, Callable[[Files, Path], Path]] = {
    "folder": folder,
    "tar": tar,
    "tar.gz": lambda files, path: tar(files, path, "w:gz"),
    "tar.xz": lambda files, path: tar(files, path, "w:xz"),
    "tar.zst": tar_by_zstd,
    "zip": zip_of,
}


def events(ran: Ran) -> list[str]:
    assert ran.status == 0
    return [f"{event['at'][:19]} {event['kind']} {event['device']}" for event in ran.json]


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_a_sosreport_is_one_log(
    nodeagent: Nodeagent, tmp_path: Path, hold: Callable[[Files, Path], Path]
) -> None:
    ran = nodeagent("replay", hold(SOSREPORT, tmp_path), "-o", "json")

    assert events(ran) == [
        "2025-03-10T01:00:00 raised 0000:3c:00.0",
        "2025-03-11T03:11:09 raised 0000:1a:00.0",
        "2025-03-11T03:12:09 raised 0000:2b:00.0",
    ]
    taken = next(line for line in ran.err.splitlines() if line.startswith("note: taken from it: "))
    for name in ("journalctl_--no-pager,", "kernel/dmesg", "dmesg_-T", "log/messages", "messages-20250311"):
        assert name in taken
    for name in ("disk-usage", "syslog.conf", "cpuinfo", "kern.log"):
        assert name not in taken


def test_what_only_the_ring_buffer_has_is_dated_by_a_line_that_others_have(
    nodeagent: Nodeagent, tmp_path: Path
) -> None:
    """As after a disk that failed: the rest reached no file."""
    files = {name: SOSREPORT[name] for name in ("var/log/messages", "sos_commands/kernel/dmesg")}
    ran = nodeagent("replay", folder(files, tmp_path), "-o", "json")

    assert events(ran) == [
        "2025-03-11T03:11:09 raised 0000:1a:00.0",
        "2025-03-11T03:12:09 raised 0000:2b:00.0",
    ]


def test_what_shares_no_line_with_others_ends_with_them(nodeagent: Nodeagent, tmp_path: Path) -> None:
    files = {"messages": "Mar 11 03:11:09 n1 kernel: text\n", "dmesg": f"[  100.0] {ONE}\n[  160.0] text\n"}
    ran = nodeagent("replay", folder(files, tmp_path), "-o", "json")

    assert events(ran) == ["2025-03-11T03:10:09 raised 0000:1a:00.0"]


def test_a_line_is_told_as_often_as_the_source_that_has_it_most(nodeagent: Nodeagent, tmp_path: Path) -> None:
    line = "EXT4-fs error (device sdb): ext4_lookup:1441: inode #40: comm find: deleted inode referenced: 42"
    files = {
        "messages": f"Mar 11 03:11:09 n1 kernel: {line}\n",
        "dmesg_-T": "".join(f"[Tue Mar 11 03:1{minute}:09 2025] {line}\n" for minute in (1, 2, 3)),
    }
    ran = nodeagent("replay", folder(files, tmp_path), "-o", "json")

    assert [(event["kind"], event["at"][11:19]) for event in ran.json] == [("raised", "03:11:09")]
    ran = nodeagent("replay", folder({"dmesg_-T": files["dmesg_-T"]}, tmp_path / "other"), "-o", "json")
    assert [(event["kind"], event["at"][11:19]) for event in ran.json] == [("raised", "03:11:09")]


def test_a_member_that_cannot_be_read_is_left_out_and_named(nodeagent: Nodeagent, tmp_path: Path) -> None:
    path = folder({"messages": SOSREPORT["var/log/messages"]}, tmp_path)
    (path / "messages-20250310.gz").write_bytes(gzip.compress(b"Mar 10 01:00:00 n1 kernel: x\n" * 999)[:-9])
    ran = nodeagent("replay", path, "-o", "json")

    assert events(ran) == ["2025-03-11T03:11:09 raised 0000:1a:00.0"]
    assert "note: messages-20250310.gz is read only in part: Compressed file ended before" in ran.err


def test_logs_of_other_names_are_taken_where_none_has_a_known_one(
    nodeagent: Nodeagent, tmp_path: Path
) -> None:
    ran = nodeagent("replay", folder({"node-17.txt": f"[  100.0] {ONE}\n"}, tmp_path), "-o", "json")

    assert events(ran) == ["1970-01-01T00:01:40 raised 0000:1a:00.0"]


def test_an_archive_without_a_log_is_refused_with_what_was_looked_for(
    nodeagent: Nodeagent, tmp_path: Path
) -> None:
    ran = nodeagent("replay", zip_of({"a.bin": "x", "b.bin": "x"}, tmp_path))

    assert (ran.status, ran.out) == (1, "")
    assert f"{tmp_path}/report.zip: no kernel log in it" in ran.err


def test_an_archive_that_is_cut_off_is_refused(nodeagent: Nodeagent, tmp_path: Path) -> None:
    archive = tar(SOSREPORT, tmp_path, "w:gz")
    archive.write_bytes(archive.read_bytes()[:-40])
    ran = nodeagent("replay", archive)

    assert (ran.status, ran.out) == (1, "")
    assert f"nodeagent: {archive}: cannot be read" in ran.err


RULE = "_" * 44
BUG_REPORT = f"""{RULE}

Start of NVIDIA bug report log file.  Please include this file, along

Date: Tue Mar 11 04:00:00 UTC 2025

{RULE}

*** /home/x/.nvidia-settings-rc
*** ls: -rw-r--r-- 1 x x 4096 2022-10-27 20:48:36.350700867 /home/x/.nvidia-settings-rc
[  100.0] {THREE}

{RULE}

Scanning kernel log files for NVIDIA kernel messages:

  /var/log/kern.log:
Mar 11 03:11:09 n1 kernel: [  100.000000] {ONE}

  journalctl -b -0:
Mar 11 03:11:09 n1 kernel: {ONE}
Mar 11 03:11:10 n1 nvidia-persistenced[12]: Started

{RULE}

dmesg:

[  100.000000] {ONE}
[  160.000000] {TWO}
{RULE}

/usr/bin/nvidia-smi --query

[   10.000000] {THREE}
{RULE}

End of NVIDIA bug report log file.
"""
"""In the sections that nvidia-bug-report.sh 37062940 writes."""


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("inside", [False, True])
def test_the_kernel_logs_of_a_bug_report_are_found(
    nodeagent: Nodeagent, tmp_path: Path, pack: Callable[[bytes], bytes], inside: bool
) -> None:
    file = tmp_path / "reports" / "nvidia-bug-report.log.gz"
    file.parent.mkdir()
    file.write_bytes(pack(BUG_REPORT.encode()))
    ran = nodeagent("replay", file.parent if inside else file, "-o", "json")

    assert events(ran) == [
        "2025-03-11T03:11:09 raised 0000:1a:00.0",
        "2025-03-11T03:12:09 raised 0000:2b:00.0",
    ]
    within = "nvidia-bug-report.log.gz: " if inside else ""
    names = ", ".join(within + name for name in ("/var/log/kern.log", "journalctl -b -0", "dmesg"))
    assert f"note: taken from it: {names}; a line" in ran.err
    assert "23 lines read, 4 kernel messages understood, 19 of others, 0 not understood" in ran.err


def test_a_section_that_a_users_file_pretends_is_not_trusted(nodeagent: Nodeagent, tmp_path: Path) -> None:
    """The script copies files of home folders: there a section can stand a second time."""
    file = tmp_path / "nvidia-bug-report.log"
    file.write_text(BUG_REPORT.replace("[  100.0] ", f"{RULE}\n\ndmesg:\n\n[  100.0] "))
    ran = nodeagent("replay", file, "-o", "json")

    assert events(ran) == [
        "2025-03-11T03:11:09 raised 0000:1a:00.0",
        "2025-03-11T03:11:09 notice 0000:3c:00.0",
        "2025-03-11T03:12:09 notice 0000:2b:00.0",
    ]


KEPT_AS = {
    "journal": ["journalctl", "journalctl_--no-pager", "journal.log", "system.journal", "journald.export"],
    "journal of one boot": ["journalctl_--no-pager_--boot_-1", "journalctl -b -0", "journalctl_-b"],
    "/var/log/messages": ["messages", "messages.1", "messages-20250311.gz", "messages_0x40F8.txt"],
    "/var/log/kern.log": ["kern.log", "kern.log.1", "kern.log.2.gz", "kernel.log", "kern.log-20250311.xz"],
    "/var/log/syslog": ["syslog", "syslog.1", "syslog.2.gz", "syslog-20250311.zst"],
    "dmesg -T": ["dmesg_-T", "dmesg-T.txt", "dmesg.human.current", "dmesg_ctime.log"],
    "dmesg": [
        "dmesg",
        "dmesg.0",
        "dmesg.1.gz",
        "dmesg.txt",
        "vmcore-dmesg.txt",
        "CurrentDmesg.txt",
        "dmesg.json",
    ],
    "host_kernel.log of Ascend": ["host_kernel.log", "host_kernel.log.1"],
    "kernel log of an Ascend device": ["device-os_20230607152207758.log"],
    "console": ["console.log", "serial-0.log"],
}


@pytest.mark.parametrize("what", KEPT_AS)
def test_a_log_is_known_by_its_name(what: str) -> None:
    ranks = {name: rank_of(f"report/{name}") for name in KEPT_AS[what]}

    assert {name: rank is not None and HOLDINGS[rank].what for name, rank in ranks.items()} == dict.fromkeys(
        KEPT_AS[what], what
    )


def test_what_is_named_alike_is_no_log() -> None:
    assert (
        chosen(
            [
                "etc/syslog.conf",
                "messages.py",
                "dmesg.conf",
                "journalctl_--disk-usage",
                "journalctl_--unit_x",
                "a.bin",
            ]
        )
        == {}
    )
