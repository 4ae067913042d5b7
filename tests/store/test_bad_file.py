"""Files that cannot be used as they are: damaged, from elsewhere, on a full or a read-only filesystem."""

import asyncio
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.model import Carried
from nodeagent.store.durability import Limits
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Recovery
from tests.store.conftest import StartChild
from tests.store.samples import MACHINE, WALL_NS, condition, signal, transaction

MIB = 1024 * 1024
FAST = Limits(commit_deadline_s=60.0, open_deadline_s=60.0, retry_s=0.02, ballast_size=MIB)


class Opened:
    """A ledger, what it found, and a way to await its changes of durability."""

    def __init__(self, directory: Path, limits: Limits, carry: Callable[[], list[Carried]] | None) -> None:
        self.changes: asyncio.Queue[bool] = asyncio.Queue()
        self.ledger = Ledger(
            directory,
            MACHINE,
            limits=limits,
            carry=carry,
            wall_ns=lambda: WALL_NS,
            on_durability_change=lambda: self.changes.put_nowait(self.ledger.durable),
        )
        self.recovery: Recovery


@asynccontextmanager
async def opened(
    directory: Path, limits: Limits = FAST, carry: Callable[[], list[Carried]] | None = None
) -> AsyncIterator[Opened]:
    one = Opened(directory, limits, carry)
    one.recovery = await one.ledger.open()
    yield one
    await one.ledger.close()


async def fill(directory: Path, commits: int = 5) -> Recovery:
    async with opened(directory) as one:
        for number in range(1, commits + 1):
            assert (await one.ledger.commit(transaction(number))).durable
    return one.recovery


def overwrite(file: Path, at: int, size: int) -> None:
    with file.open("r+b") as opened_file:
        opened_file.seek(at)
        opened_file.write(b"\xa5" * size)


def damage_header(file: Path) -> None:
    overwrite(file, 0, 100)


def damage_pages(file: Path) -> None:
    overwrite(file, 4096, file.stat().st_size - 4096)


def replace_by_another_database(file: Path) -> None:
    file.unlink()
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE something (else_ TEXT)")
    other.execute("PRAGMA user_version = 1")
    other.close()


def come_from_a_newer_version(file: Path) -> None:
    newer = sqlite3.connect(file)
    newer.execute("PRAGMA user_version = 999")
    newer.close()


def hold_an_input_of_an_unknown_kind(file: Path) -> None:
    other = sqlite3.connect(file)
    other.execute("UPDATE input SET kind = 'Nonsense' WHERE number = 3")
    other.commit()
    other.close()


def set_aside_in(directory: Path) -> list[Path]:
    return [file for file in directory.glob("store.db.damaged-*") if not file.name.endswith("-wal")]


def remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", folder], check=True)


@pytest.mark.parametrize(
    "damage",
    [
        damage_header,
        damage_pages,
        replace_by_another_database,
        come_from_a_newer_version,
        hold_an_input_of_an_unknown_kind,
    ],
)
async def test_a_damaged_file_is_moved_aside_and_a_new_store_begins(
    tmp_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    before = await fill(tmp_path)
    damage(tmp_path / "store.db")
    async with opened(tmp_path) as one:
        assert (one.recovery.durable, one.recovery.last_seq, one.recovery.inputs) == (True, 0, ())
        assert one.recovery.store_id.uuid != before.store_id.uuid
        assert (await one.ledger.commit(transaction(1))).last_seq == 1
    assert len(set_aside_in(tmp_path)) == 1
    assert "is damaged" in caplog.text


async def test_only_the_newest_damaged_files_are_kept(tmp_path: Path) -> None:
    for _ in range(5):
        await fill(tmp_path, commits=1)
        damage_header(tmp_path / "store.db")
    assert len(set_aside_in(tmp_path)) == 3


async def test_damage_found_while_running_keeps_the_numbers_and_begins_anew_from_the_live_cells(
    tmp_path: Path,
) -> None:
    await fill(tmp_path)
    async with opened(tmp_path, carry=lambda: [condition(1)]) as one:
        damage_pages(tmp_path / "store.db")
        assert await one.ledger.read_events(0) == []
        assert [await one.changes.get(), await one.changes.get()] == [False, True]
        committed = await one.ledger.commit(transaction(6))
        assert (committed.last_seq, committed.durable) == (6, True)
        assert committed.store_id.uuid == one.recovery.store_id.uuid
        assert committed.store_id.epoch > one.recovery.store_id.epoch
        assert one.ledger.oldest_seq == 6
    async with opened(tmp_path) as again:
        assert again.recovery.carried == (condition(1),)
        assert [stamped.input for stamped in again.recovery.inputs] == [signal(6)]
        assert [event.seq for event in await again.ledger.read_events(0)] == [6]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill_up(folder: Path) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return filler


@pytest.mark.root
async def test_the_ballast_is_given_up_before_anything_else_on_a_full_disk(small_disk: Path) -> None:
    directory = small_disk / "state"
    async with opened(directory) as one:
        await one.ledger.trim()
        assert (directory / "ballast").stat().st_size == MIB
        fill_up(small_disk)
        number = 0
        while (directory / "ballast").exists():
            number += 1
            assert (await one.ledger.commit(transaction(number))).durable
        assert one.ledger.durable


@pytest.mark.root
async def test_a_full_disk_is_survived_in_memory_and_written_once_there_is_space(small_disk: Path) -> None:
    directory = small_disk / "state"
    async with opened(directory, Limits(retry_s=0.02, ballast_size=0)) as one:
        filler = fill_up(small_disk)
        number = 0
        while one.ledger.durable:
            number += 1
            await one.ledger.commit(transaction(number))
        in_memory = one.ledger.store_id
        for _ in range(9):
            number += 1
            assert not (await one.ledger.commit(transaction(number))).durable
        assert [event.seq for event in await one.ledger.read_events(number - 5)] == [
            *range(number - 4, number + 1)
        ]
        filler.unlink()
        while not await one.changes.get():
            pass
        assert (await one.ledger.commit(transaction(number + 1))).durable
        assert one.ledger.store_id == in_memory
    async with opened(directory) as again:
        assert again.recovery.store_id == in_memory
        assert [event.seq for event in await again.ledger.read_events(0)] == list(range(1, number + 2))


@pytest.mark.root
async def test_a_start_on_a_full_disk_knows_the_last_life(small_disk: Path) -> None:
    directory = small_disk / "state"
    before = await fill(directory)
    filler = fill_up(small_disk)
    async with opened(directory, Limits(retry_s=0.02, ballast_size=0)) as one:
        assert (one.recovery.durable, one.recovery.last_seq) == (False, 5)
        assert one.recovery.store_id.uuid == before.store_id.uuid
        assert (await one.ledger.commit(transaction(6))).last_seq == 6
        filler.unlink()
        while not await one.changes.get():
            pass
        assert (await one.ledger.commit(transaction(7))).durable


@pytest.mark.root
@pytest.mark.parametrize("killed", [False, True])
async def test_a_start_on_a_read_only_disk_knows_the_last_life(
    small_disk: Path, start_child: StartChild, killed: bool
) -> None:
    directory = small_disk / "state"
    child = await start_child(directory)
    await child.hear()
    said: dict[str, Any] = await child.ask("commit", count=5)
    if killed:
        await child.kill()
    else:
        await child.ask("close")
    remount(small_disk, "ro")
    async with opened(directory) as one:
        assert not one.recovery.durable
        assert [stamped.input for stamped in one.recovery.inputs] == [signal(at) for at in range(1, 6)]
        assert [event.seq for event in await one.ledger.read_events(0)] == [1, 2, 3, 4, 5]
        committed = await one.ledger.commit(transaction(6))
        assert (committed.last_seq, committed.durable) == (6, False)
        assert str(committed.store_id) != said["store_id"]
        remount(small_disk, "rw")
        while not await one.changes.get():
            pass
        assert (await one.ledger.commit(transaction(7))).store_id == committed.store_id
        assert [event.seq for event in await one.ledger.read_events(0)] == [1, 2, 3, 4, 5, 6, 7]


async def test_a_file_removed_while_in_use_is_made_anew_from_the_live_cells(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    before = await fill(directory)
    async with opened(directory, carry=lambda: [condition(1)]) as one:
        shutil.rmtree(directory)
        await one.ledger.trim()
        assert [await one.changes.get(), await one.changes.get()] == [False, True]
        assert (await one.ledger.commit(transaction(6))).last_seq == 6
    async with opened(directory) as again:
        assert again.recovery.store_id.uuid == before.store_id.uuid
        assert again.recovery.carried == (condition(1),)
        assert [stamped.input for stamped in again.recovery.inputs] == [signal(6)]


async def test_a_state_directory_that_cannot_be_made_is_no_reason_to_stop(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    directory.write_text("a file where the directory should be")
    async with opened(directory) as one:
        assert (one.recovery.durable, one.recovery.last_seq) == (False, 0)
        committed = await one.ledger.commit(transaction(1))
        assert not committed.durable
        directory.unlink()
        while not await one.changes.get():
            pass
        assert one.ledger.store_id == committed.store_id
    async with opened(directory) as again:
        assert again.recovery.store_id == committed.store_id
        assert [stamped.input for stamped in again.recovery.inputs] == [signal(1)]
