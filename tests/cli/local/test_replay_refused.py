"""A file that is wrong is refused whole: where, which field, what would be right; nothing is shown of it."""

import gzip
from pathlib import Path

import pytest

from tests.cli.conftest import Nodeagent, Replay, signal

GOOD = signal("03:00:00", "npu0", "80E18005")
RIGHT_TIME = 'must be an RFC 3339 time with its zone, such as "2026-01-02T03:04:05.678Z"'

WRONG = {
    "no JSON": (GOOD[:-1], "must be one JSON object on a line: Input data was truncated"),
    "no object": ("[]", "must be one JSON object on a line: Expected `object`, got `array`"),
    "no zone": (GOOD.replace("00Z", "00"), f'at: "2026-01-02T03:00:00": {RIGHT_TIME}'),
    "no such day": (GOOD.replace("01-02T", "02-30T"), f"day is out of range for month; {RIGHT_TIME}"),
    "number for a time": (GOOD.replace('"2026-01-02T03:00:00Z"', "17"), f"at: 17: {RIGHT_TIME}"),
    "before 1970": (GOOD.replace("2026", "1969"), "must not lie before 1970"),
    "misspelt assertion": (
        GOOD.replace('"occur"', '"ocur"'),
        'assertion: "ocur": must be one of occur, recover, once; the nearest is "occur"',
    ),
    "unknown field": (
        signal("03:00:00", "npu0", "1", sevrity=1),
        'sevrity: unknown key; the nearest known is "severity"',
    ),
    "no device": (GOOD.replace('"device": "npu0", ', ""), "device: missing; it must be text in quotes"),
    "empty code": (signal("03:00:00", "npu0", ""), 'code: "": must be text in quotes: 1 to 128'),
    "severity": (
        signal("03:00:00", "npu0", "1", severity=4),
        "severity: 4: must be a whole number from 0 to 3",
    ),
    "advance": ('{"at": "2026-01-02T03:00:00Z", "advance": 1}', "advance: 1: must be true"),
}


@pytest.mark.parametrize(("line", "reason"), WRONG.values(), ids=WRONG)
def test_a_wrong_line_is_named_with_its_number_field_and_what_would_be_right(
    replay: Replay, tmp_path: Path, line: str, reason: str
) -> None:
    ran = replay([GOOD, "", line])

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"nodeagent: {tmp_path}/replayed:3: ")
    assert reason in ran.err


def test_every_wrong_line_is_reported_at_once(replay: Replay, tmp_path: Path) -> None:
    ran = replay([GOOD, "{", GOOD.replace("occur", "x")])

    assert [line.split(": ")[1] for line in ran.err.splitlines()] == [
        f"{tmp_path}/replayed:2",
        f"{tmp_path}/replayed:3",
    ]


def test_a_journal_entry_without_its_time_is_refused(replay: Replay) -> None:
    ran = replay(['{"MESSAGE": "x"}'])

    assert (ran.status, ran.out) == (1, "")
    assert "replayed:1: __REALTIME_TIMESTAMP: None: must be microseconds since 1970, in quotes" in ran.err


def test_a_file_that_is_not_there_is_named(nodeagent: Nodeagent, tmp_path: Path) -> None:
    ran = nodeagent("replay", tmp_path / "none")

    assert (ran.status, ran.err) == (
        1,
        f"nodeagent: {tmp_path}/none: cannot be read: No such file or directory\n",
    )


def test_a_packed_file_that_is_cut_off_is_refused(nodeagent: Nodeagent, tmp_path: Path) -> None:
    file = tmp_path / "log.gz"
    file.write_bytes(gzip.compress(b"[ 1.000000] x\n" * 1000)[:-9])

    ran = nodeagent("replay", file)

    assert (ran.status, ran.out) == (1, "")
    assert "log.gz: cannot be read: Compressed file ended before" in ran.err


def test_bad_tables_are_reported_as_tables_check_tells_them(replay: Replay, tmp_path: Path) -> None:
    ran = replay([GOOD], 'kind = "chip"\n[codes.1]\nlevel = "Bad"\n')

    assert (ran.status, ran.out) == (1, "")
    assert f"nodeagent: {tmp_path}/tables/own.toml:3: codes.1.level: " in ran.err


@pytest.mark.parametrize(("magic", "by"), [(b"7z\xbc\xaf\x27\x1c", "7z"), (b"Rar!\x1a\x07\x01\0", "rar")])
def test_a_log_that_cannot_be_unpacked_is_no_log_without_faults(
    nodeagent: Nodeagent, tmp_path: Path, magic: bytes, by: str
) -> None:
    file = tmp_path / "kern.log"
    file.write_bytes(magic + bytes(100))

    ran = nodeagent("replay", file)

    assert (ran.status, ran.out) == (1, "")
    assert ran.err == f"nodeagent: {file}: cannot be read: packed by {by}: unpack it first\n"


def test_a_program_that_is_not_installed_is_named_with_the_way_to_go(
    nodeagent: Nodeagent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kern.log"
    file.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    monkeypatch.setenv("PATH", str(tmp_path))

    ran = nodeagent("replay", file)

    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        f"nodeagent: {file}: cannot be read: packed by zstd: unpack it first;"
        " zstd, which would do it here, is not installed\n"
    )
