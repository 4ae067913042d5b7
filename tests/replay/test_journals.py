"""What journalctl makes of one journal has the same lines of the kernel in each of its forms."""

import os
import subprocess
from pathlib import Path

import pytest

from nodeagent.replay import formats
from nodeagent.replay.log import Log, LogLine
from tests.journals import JOURNAL_REMOTE

FORGED = "NVRM: Xid (PCI:0000:4c:00): 79, GPU has fallen off the bus."
KERNEL = "_TRANSPORT=kernel\nSYSLOG_FACILITY=0\nSYSLOG_IDENTIFIER=kernel\nPRIORITY=3\n_HOSTNAME=n1\n"
OTHER = "_TRANSPORT=journal\nSYSLOG_IDENTIFIER=app\n_PID=77\nPRIORITY=3\n_HOSTNAME=n1\n"
BEGUN_US = 1_741_662_669_123_456


def entry(after_s: int, fields: str, message: str) -> bytes:
    after_us = after_s * 1_000_000
    at = f"__REALTIME_TIMESTAMP={BEGUN_US + after_us}\n__MONOTONIC_TIMESTAMP={after_us}\n"
    text = message.encode()
    body = b"MESSAGE\n" + len(text).to_bytes(8, "little") + text + b"\n\n"
    return (at + f"_BOOT_ID={'a' * 32}\n" + fields).encode() + body


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journal")
    exported, journal = folder / "exported", folder / "system.journal"
    forged = f"first\n[   12.345678] {FORGED}\nMar 11 03:11:09 n1 kernel: {FORGED}\n    _TRANSPORT=kernel"
    exported.write_bytes(
        entry(1, KERNEL, "one")
        + entry(2, OTHER, forged)
        + entry(3, KERNEL, "two\nlines")
        + entry(4, OTHER.replace("app", "kernel"), FORGED)
        + entry(5, KERNEL, "three")
    )
    subprocess.run([JOURNAL_REMOTE, f"--output={journal}", exported], check=True, capture_output=True)
    return journal


def lines_of(path: Path) -> list[LogLine]:
    log = formats.read(path, 0)
    assert isinstance(log, Log)
    return [line for source in log.sources for line in source.lines]


@pytest.mark.parametrize(
    "mode",
    [
        *(
            "short",
            "short-full",
            "short-iso",
            "short-iso-precise",
            "short-precise",
            "short-unix",
            "with-unit",
        ),
        *("verbose", "export", "json", "json-pretty", "json-sse", "json-seq"),
    ],
)
@pytest.mark.parametrize("colours", ["0", "1"])
def test_the_kernels_lines_are_the_same_in_each_form(
    journal: Path, tmp_path: Path, mode: str, colours: str
) -> None:
    shown = subprocess.run(
        ["journalctl", f"--file={journal}", f"--output={mode}", "--no-pager"],
        env={**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": colours},
        capture_output=True,
        check=True,
    )
    file = tmp_path / "shown"
    file.write_bytes(shown.stdout)
    os.utime(file, (BEGUN_US // 1_000_000 + 60,) * 2)

    lines = lines_of(file)

    assert [(line.message, line.trusted) for line in lines] == [
        ("one", True),
        ("two\nlines", True),
        ("three", True),
    ]
    assert [line.at_ns // 1_000_000_000 - BEGUN_US // 1_000_000 for line in lines] == [1, 3, 5]


def test_a_file_of_the_journal_itself_is_read(journal: Path) -> None:
    assert [line.message for line in lines_of(journal)] == ["one", "two\nlines", "three"]


def test_a_folder_of_journals_is_read(journal: Path) -> None:
    assert [line.message for line in lines_of(journal.parent)] == ["one", "two\nlines", "three"]


def test_dmesg_in_json_says_who_wrote_a_line(tmp_path: Path) -> None:
    """As ``dmesg -J -x`` of util-linux 2.38 writes it."""
    file = tmp_path / "dmesg.json"
    file.write_text(
        '{\n   "dmesg": [\n      {\n         "fac": "kern",\n         "pri": "err",\n'
        '         "time":   394.858431,\n         "msg": "one {"\n      },{\n         "fac": "user",\n'
        '         "pri": "err",\n         "time":   395.000000,\n         "msg": "two"\n      }\n   ]\n}\n'
    )

    assert lines_of(file) == [
        LogLine(394_858_431_000, "one {"),
        LogLine(395_000_000_000, "two", trusted=False),
    ]


def test_what_a_container_runtime_keeps_is_read(tmp_path: Path) -> None:
    file = tmp_path / "x-json.log"
    file.write_text(
        '{"log":"[   12.345678] one\\n","stream":"stdout","time":"2025-03-11T03:11:09.123456789Z"}\n'
        '{"log":"\\u003c11\\u003e[   12.345678] two\\n","stream":"stdout","time":"2025-03-11T03:11:10.5Z"}\n'
        "not in JSON\n"
    )

    assert lines_of(file) == [
        LogLine(1_741_662_669_123_456_789, "one"),
        LogLine(1_741_662_670_500_000_000, "two", trusted=False),
        LogLine(1_741_662_670_500_000_000, "not in JSON", unread=3),
    ]
