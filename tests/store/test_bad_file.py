"""Files that cannot be used as they are: of others, of later versions, removed, on a full or a read-only
filesystem.
"""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodeagent.store.disk.durability import Limits
from nodeagent.store.errors import StoreUnreadableError
from nodeagent.store.layout import SCHEMA_VERSION
from nodeagent.store.records import StoreRecovery
from tests.store.conftest import StartChild
from tests.store.opened import MIB, opened
from tests.store.samples import (
    WALL_NS,
    condition,
    make_the_catalogs_texts,
    names_in,
    set_aside_in,
    signal,
    transaction,
)
from tests.waiting import until


async def fill(directory: Path, commits: int = 5) -> StoreRecovery:
    async with opened(directory) as one:
        for number in range(1, commits + 1):
            assert (await one.ledger.commit(transaction(number))).durable
    return one.recovery


def remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", folder], check=True)


def written_by_another_program(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE something (else_ TEXT)")
        other.execute("PRAGMA user_version = 1")


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "something").write_text("of somebody")


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("make", [written_by_another_program, a_folder, empty])
async def test_what_is_no_store_is_kept_aside_and_a_new_one_begins(
    tmp_path: Path, make: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    before = await fill(tmp_path)
    make(tmp_path / "store.db")
    async with opened(tmp_path) as one:
        assert (one.recovery.durable, one.recovery.last_seq, one.recovery.inputs) == (True, 0, ())
        assert one.recovery.store_id.uuid != before.store_id.uuid
        (damage,) = one.recovery.damages
        assert (damage.lost, damage.is_whole) == (("everything",), False)
        assert (await one.ledger.commit(transaction(1))).last_seq == 1
    assert [each.name for each in set_aside_in(tmp_path)] == [damage.aside]
    assert "is damaged" in caplog.text


async def test_only_the_newest_damaged_files_are_kept(tmp_path: Path) -> None:
    for make in (empty, a_folder, empty, a_folder, empty):
        await fill(tmp_path, commits=1)
        make(tmp_path / "store.db")
    async with opened(tmp_path):
        assert len(set_aside_in(tmp_path)) == 3


async def test_a_file_of_a_later_version_is_left_as_it_is_and_the_daemon_goes_on_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "store.db"
    before = await fill(tmp_path)
    with closing(sqlite3.connect(file)) as later:
        later.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        later.execute("UPDATE state SET checksum = checksum + 1")
        later.commit()
    bytes_before = file.read_bytes()
    async with opened(tmp_path) as one:
        assert not one.recovery.durable
        assert f"schema {SCHEMA_VERSION + 1}; this one knows {SCHEMA_VERSION}" in one.ledger.degraded
        # What of it this version can read is better than nothing.
        assert [stamped.input for stamped in one.recovery.inputs] == [signal(at) for at in range(1, 6)]
        (damage,) = one.recovery.damages
        assert (damage.lost, damage.is_whole) == (("how far the store had come",), False)
        assert not (await one.ledger.commit(transaction(1))).durable
        await until(lambda: "still not durable" in caplog.text)
    assert file.read_bytes() == bytes_before
    assert names_in(tmp_path) == ["ballast", "store.db"]
    assert before.durable


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
    async with opened(directory, Limits(retry_s=0.02, reserved_size=0)) as one:
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
        await one.durable()
        assert one.ledger.damages == ()
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
    async with opened(directory, Limits(retry_s=0.02, reserved_size=0)) as one:
        assert (one.recovery.durable, one.recovery.last_seq) == (False, 5)
        assert one.recovery.store_id.uuid == before.store_id.uuid
        assert (await one.ledger.commit(transaction(6))).last_seq == 6
        filler.unlink()
        await one.durable()
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
        await one.durable()
        assert (await one.ledger.commit(transaction(7))).store_id == committed.store_id
        assert [event.seq for event in await one.ledger.read_events(0)] == [1, 2, 3, 4, 5, 6, 7]


def remove_the_folder(directory: Path) -> None:
    shutil.rmtree(directory)


def remove_the_file(directory: Path) -> None:
    (directory / "store.db").unlink()


def remove_the_log(directory: Path) -> None:
    (directory / "store.db-wal").unlink()


def put_another_file_in_place(directory: Path) -> None:
    shutil.copyfile(directory / "store.db", directory / "copy")
    (directory / "copy").replace(directory / "store.db")


@pytest.mark.parametrize(
    "remove", [remove_the_folder, remove_the_file, remove_the_log, put_another_file_in_place]
)
async def test_a_commit_to_a_file_that_has_lost_its_name_is_not_durable_until_it_is_made_anew(
    tmp_path: Path, remove: Callable[[Path], None]
) -> None:
    directory = tmp_path / "state"
    before = await fill(directory)
    async with opened(directory, carry=lambda: [condition(1)]) as one:
        assert (await one.ledger.commit(transaction(6))).durable
        remove(directory)
        committed = await one.ledger.commit(transaction(7))
        assert (committed.last_seq, committed.durable) == (7, False)
        assert "was removed or replaced while in use" in one.ledger.degraded
        assert [await one.changes.get(), await one.changes.get()] == [False, True]
        assert (await one.ledger.commit(transaction(8))).durable
    async with opened(directory) as again:
        assert again.recovery.store_id.uuid == before.store_id.uuid
        assert again.recovery.last_seq == 8
        assert signal(8) in [stamped.input for stamped in again.recovery.inputs]


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


async def test_a_file_made_anew_holds_what_memory_has_and_what_it_has_not_is_told(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    await fill(directory)
    async with opened(directory, carry=lambda: [condition(1)]) as one:
        await one.ledger.ack("volcano", "uid:0", one.ledger.store_id, 4)
        await one.ledger.put_catalog("d1", b"tables", "loaded")
        await one.ledger.audit(WALL_NS, "uid 0", "IsolateDevice", "npu2", "isolated: RMA")
        assert (await one.ledger.commit(transaction(6))).durable
        for each in directory.glob("store.db*"):
            each.unlink()
        await one.ledger.trim()
        await one.durable()
        (damage,) = one.ledger.damages
        assert (damage.why, damage.aside) == ("its files were removed or replaced while in use", "")
        assert damage.lost == ("events 1 to 6 of the history", "entries 1 to 1 of the audit log")
        assert damage.is_whole
        assert (await one.ledger.commit(replace(transaction(7), reports_damage=True))).durable
    async with opened(directory) as again:
        assert [consumer.row for consumer in again.ledger.consumers()] == [("volcano", "uid:0", 4, WALL_NS)]
        assert await again.ledger.last_good_catalog() == ("d1", b"tables")
        assert [event.seq for event in await again.ledger.read_events(0)] == [7]
        assert again.recovery.damages == ()


async def test_what_a_repair_has_set_aside_is_not_set_aside_again_while_there_is_no_state_to_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(tmp_path)
    async with opened(tmp_path) as one:
        await one.ledger.put_catalog("d1", b"tables", "loaded")
        make_the_catalogs_texts(tmp_path)
        with pytest.raises(StoreUnreadableError, match="not as it was written"):
            await one.ledger.get_catalog("d1")
        await until(lambda: caplog.text.count("no state is at hand") == 3)
        assert len(set_aside_in(tmp_path)) == 1
        one.ledger.carry = lambda: [condition(2)]
        await one.durable()
        assert len(one.ledger.damages) == 1
    async with opened(tmp_path) as again:
        assert again.recovery.carried == (condition(2),)


async def test_a_state_directory_that_cannot_be_made_is_no_reason_to_stop(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    directory.write_text("a file where the directory should be")
    async with opened(directory) as one:
        assert (one.recovery.durable, one.recovery.last_seq) == (False, 0)
        committed = await one.ledger.commit(transaction(1))
        assert not committed.durable
        directory.unlink()
        await one.durable()
        assert one.ledger.damages == ()
        assert one.ledger.store_id == committed.store_id
    async with opened(directory) as again:
        assert again.recovery.store_id == committed.store_id
        assert [stamped.input for stamped in again.recovery.inputs] == [signal(1)]
