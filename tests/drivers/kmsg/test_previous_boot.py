"""The previous boot's last kernel lines, out of real journals: once, and only where no shutdown ended it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Pattern
from nodeagent.core.model import Signal
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.drivers.kmsg import previous_boot
from nodeagent.store.records import Cursor
from tests.daemon.staged import Staged, staged
from tests.journals import STOPPED, Entry, write_journal

BEFORE, THIS = "1" * 32, "2" * 32
BOOT = "22222222-2222-2222-2222-222222222222"
PATTERNS = (Pattern(id="F", regex=r"^fault (?P<code>\w+)", code="{code}", device="node"),)
HOUR_NS = 3600 * 10**9

Journal = Callable[[Sequence[Entry]], WorkerSpec]


def was(message: str, at_s: int = 5000, **fields: str) -> Entry:
    return Entry(boot=BEFORE, at_s=at_s, message=message, fields=fields)


def now(message: str, at_s: int = 6000) -> Entry:
    return Entry(boot=THIS, at_s=at_s, message=message)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    def made(entries: Sequence[Entry]) -> WorkerSpec:
        folder = write_journal(tmp_path / "journal", entries)
        return spec(folder)

    return made


def spec(folder: Path, cursor: Cursor | None = None) -> WorkerSpec:
    return WorkerSpec(
        source="previous_boot",
        boot_id=BOOT,
        config={"path": str(folder), "window_ns": HOUR_NS},
        patterns=PATTERNS,
        cursor=cursor,
        absent_retry_s=None,
    )


async def read(stage: Staged) -> list[tuple[str, int]]:
    """Codes with their counts, once the worker has ended."""
    await stage.until(lambda: stage.health.absent and stage.health.pid is None, "its end")
    return [(given.code, given.count) for given in stage.inputs if isinstance(given, Signal)]


async def test_a_line_of_the_previous_boot_counts_as_often_as_it_says(journal: Journal) -> None:
    counted = Pattern(id="C", regex=r"^corrected (?P<count>\d+)", code="C", device="node")
    given = replace(journal([was("corrected 5"), was("corrected 2"), now("up")]), patterns=(counted,))

    async with staged(given) as stage:
        assert await read(stage) == [("C", 7)]


async def test_the_last_lines_of_a_boot_that_crashed_are_reported_once(journal: Journal) -> None:
    given = journal([was("all is well"), was("fault F1"), was("fault F1"), was("fault F2"), now("fault F3")])

    async with staged(given) as stage:
        assert await read(stage) == [("F1", 2), ("F2", 1)]
        (last,) = (each for each in stage.deliveries if each.cursor is not None)
        (_, second) = (each for each in stage.inputs if isinstance(each, Signal))

    assert second.evidence == {
        "line": "fault F2",
        "boot_id": BEFORE,
        "time": "1970-01-01T01:23:20.000+00:00",
        "pattern": "F",
        "code": "F2",
    }
    async with staged(spec(Path(str(given.config["path"])), last.cursor)) as again:
        assert await read(again) == []


async def test_of_a_boot_that_was_shut_down_nothing_is_reported(journal: Journal) -> None:
    stopped = was("Journal stopped", _TRANSPORT="driver", MESSAGE_ID=STOPPED)

    async with staged(journal([was("fault F1"), stopped, now("up")])) as stage:
        assert await read(stage) == []


@pytest.mark.parametrize("transport", ["journal", "syslog", "stdout", "audit", "kernel"])
async def test_a_users_entry_with_the_message_id_of_journald_ends_no_boot(
    journal: Journal, transport: str
) -> None:
    stopped = was("Journal stopped", _TRANSPORT=transport, MESSAGE_ID=STOPPED)

    async with staged(journal([was("fault F1"), stopped, now("up")])) as stage:
        assert await read(stage) == [("F1", 1)]


async def test_a_journal_daemon_that_was_restarted_is_no_shutdown(journal: Journal) -> None:
    stopped = was("Journal stopped", _TRANSPORT="driver", MESSAGE_ID=STOPPED)

    async with staged(journal([stopped, was("fault F1"), now("up")])) as stage:
        assert await read(stage) == [("F1", 1)]


async def test_only_the_window_and_only_the_kernels_own_lines_are_read(journal: Journal) -> None:
    entries = [
        was("fault OLD", at_s=1000),
        was("fault PROGRAM", _TRANSPORT="syslog"),
        was("fault USER", SYSLOG_FACILITY="1"),
        was("fault NEW"),
        now("up"),
    ]

    async with staged(journal(entries)) as stage:
        assert await read(stage) == [("USER", 1), ("NEW", 1)]
        trusted = {each.code: each.trusted for each in stage.inputs if isinstance(each, Signal)}

    assert trusted == {"USER": False, "NEW": True}


async def test_where_this_boot_has_written_nothing_yet_the_last_one_is_the_previous(journal: Journal) -> None:
    async with staged(
        journal([Entry(boot="3" * 32, at_s=4000, message="fault F0"), was("fault F1")])
    ) as stage:
        assert await read(stage) == [("F1", 1)]


@pytest.mark.parametrize("there_is", ["nothing", "a folder", "no journal", "this boot alone"])
async def test_without_an_earlier_boot_there_is_nothing(tmp_path: Path, there_is: str) -> None:
    folder = tmp_path / "journal"
    if there_is == "this boot alone":
        write_journal(folder, [now("fault F1")])
    elif there_is != "nothing":
        folder.mkdir()
    if there_is == "no journal":
        (folder / "system.journal").write_bytes(b"LPKSHHRH" + bytes(1000))

    async with staged(spec(folder)) as stage:
        assert await read(stage) == []


async def test_a_line_that_ends_the_worker_is_left_out_by_the_next(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = journal([*(was(f"fault F{n}") for n in range(previous_boot.AT_ONCE + 1)), now("up")])
    taken = Cursor(boot_id=BOOT, seq=previous_boot.AT_ONCE)

    async with staged(spec(Path(str(given.config["path"])), taken)) as stage:
        assert await read(stage) == [(f"F{previous_boot.AT_ONCE}", 1)]
