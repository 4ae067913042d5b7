"""A damaged file: what proves itself is kept, what does not is reported, and nothing keeps the daemon from
starting.
"""

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.core.model import Carried, Hold, Tick
from nodeagent.store.disk.writer import as_ours
from nodeagent.store.layout import CARRIED, DAMAGE, EVENT, INPUT, SCHEMA_VERSION, STATE
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import StoreRecovery
from tests.store.conftest import StartChild
from tests.store.damaged import CELLS, Look, change_a_letter, cut, fill, hold, look, overwrite, spoil
from tests.store.samples import (
    MACHINE,
    PATIENT,
    WALL_NS,
    condition,
    names_in,
    set_aside_in,
    signal,
    transaction,
)

FLIPS = 400
"""Of the bytes of a store of some 60 kB: enough to meet each kind of page, row and pointer."""


@pytest.mark.parametrize("at", [0, 16, 18, 20, 21, 28, 44, 52, 56, 60, 96])
async def test_a_damaged_header_costs_nothing(tmp_path: Path, at: int) -> None:
    before = await fill(tmp_path)
    overwrite(tmp_path / "store.db", at, 4)
    found = await look(tmp_path)
    assert (found.recovery.carried, found.recovery.inputs) == (before.carried, before.inputs)
    assert (found.recovery.cursors, found.recovery.anchor) == (before.cursors, before.anchor)
    assert found.recovery.store_id.uuid == before.store_id.uuid
    assert (found.events, found.consumers, found.audited) == ([1, 2, 3, 4, 5, 6], ["volcano"], ["npu2"])
    assert all((damage.lost, damage.is_whole) == ((), True) for damage in found.recovery.damages)


async def test_a_damaged_event_costs_itself(tmp_path: Path) -> None:
    before = await fill(tmp_path)
    spoil(EVENT, 3, change_a_letter)(tmp_path)
    spoil(EVENT, 4, cut)(tmp_path)
    found = await look(tmp_path)
    assert (found.events, found.damaged_events, found.durable) == ([1, 2, 5, 6], 2, True)
    assert (found.recovery.store_id, found.recovery.damages) == (before.store_id, ())


@pytest.mark.parametrize("change", [change_a_letter, cut])
async def test_a_damaged_input_costs_itself_and_is_told(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    before = await fill(tmp_path)
    spoil(INPUT, 5, change)(tmp_path)
    found = await look(tmp_path)
    assert [stamped.input for stamped in found.recovery.inputs] == [signal(4), Tick(), signal(6)]
    assert (found.recovery.carried, found.events) == (before.carried, [1, 2, 3, 4, 5, 6])
    (damage,) = found.recovery.damages
    assert (damage.why, damage.lost) == (
        "input 5 is not as it was written",
        ("1 inputs since the last compaction",),
    )
    assert damage.is_whole, "what it did stands in the history"


async def test_a_damaged_input_whose_events_are_lost_too_may_have_been_an_isolation(tmp_path: Path) -> None:
    await fill(tmp_path)
    spoil(INPUT, 5, cut)(tmp_path)
    spoil(EVENT, 5, cut)(tmp_path)
    (damage,) = (await look(tmp_path)).recovery.damages
    assert not damage.is_whole


async def test_a_damaged_isolation_that_can_still_be_read_is_doubtful(tmp_path: Path) -> None:
    await fill(tmp_path)
    spoil(CARRIED, 1, change_a_letter)(tmp_path)
    found = await look(tmp_path)
    assert found.recovery.carried == (condition(1), hold(3))
    (damage,) = found.recovery.damages
    assert [carried.cell.id for carried in damage.doubtful if isinstance(carried.cell, Hold)] == [
        "die-2/hold"
    ]
    assert (damage.lost, damage.is_whole) == (("1 records of the live state",), False)


async def test_a_damaged_isolation_that_cannot_be_read_is_told_as_lost(tmp_path: Path) -> None:
    await fill(tmp_path)
    spoil(CARRIED, 1, cut)(tmp_path)
    (damage,) = (await look(tmp_path)).recovery.damages
    assert (damage.lost, damage.is_whole, damage.doubtful) == (("1 records of the live state",), False, ())


async def test_a_state_of_another_type_is_made_anew_from_what_is_left(tmp_path: Path) -> None:
    before = await fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        connection.execute("UPDATE state SET last_seq = 'abc'")
        connection.commit()
    found = await look(tmp_path)
    assert (found.recovery.carried, found.recovery.inputs) == (before.carried, before.inputs)
    assert (found.recovery.last_seq, found.events) == (6, [1, 2, 3, 4, 5, 6])
    assert found.recovery.engine_now_ns == 6
    assert found.recovery.anchor is not None
    assert (found.recovery.anchor.boot_id, found.recovery.anchor.rule_ns) == ("", 6)
    (damage,) = found.recovery.damages
    assert (damage.lost, damage.is_whole) == (("how far the store had come",), False)


async def test_a_page_that_is_gone_costs_the_rows_on_it(tmp_path: Path) -> None:
    before = await fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'event'").fetchone()
    overwrite(tmp_path / "store.db", 4096 * (page - 1), 4096)
    found = await look(tmp_path)
    assert (found.recovery.carried, found.recovery.inputs) == (before.carried, before.inputs)
    assert (found.recovery.last_seq, found.events) == (6, [])
    (damage,) = found.recovery.damages
    assert (damage.lost, damage.is_whole) == (("6 events of the history",), True)


async def test_a_damaged_log_costs_what_stands_at_the_damage_and_nothing_behind_it(
    tmp_path: Path, start_child: StartChild
) -> None:
    child = await start_child(tmp_path)
    await child.hear()
    await child.ask("commit", count=9)
    await child.kill()
    log = tmp_path / "store.db-wal"
    overwrite(log, log.stat().st_size // 2, 8)
    found = await look(tmp_path)
    assert [stamped.input for stamped in found.recovery.inputs] == [signal(at) for at in range(1, 10)]
    assert found.events == list(range(1, 10))


async def with_a_newer_base_in_the_log(directory: Path, base: list[Carried]) -> None:
    """The file holds one base; its log the next, and two inputs since, as a crash leaves them."""
    living = directory / "living"
    await fill(living)
    ledger = Ledger(living, MACHINE, limits=PATIENT, wall_ns=lambda: WALL_NS)
    await ledger.open()
    await ledger.commit(transaction(7))
    await ledger.compact(base, 7)
    await ledger.commit(transaction(8))
    for name in ("store.db", "store.db-wal"):
        shutil.copyfile(living / name, directory / name)
    await ledger.close()


def zero_the_pages_of_the_log_with(log: Path, words: bytes) -> int:
    content = bytearray(log.read_bytes())
    zeroed = 0
    for at in range(32 + 24, len(content), 24 + 4096):
        if words in content[at : at + 4096]:
            content[at : at + 4096] = bytes(4096)
            zeroed += 1
    log.write_bytes(content)
    return zeroed


async def test_a_base_that_is_lost_gives_way_to_the_one_before_and_is_told_as_lost(tmp_path: Path) -> None:
    await with_a_newer_base_in_the_log(tmp_path, [hold(4), hold(5)])
    assert zero_the_pages_of_the_log_with(tmp_path / "store.db-wal", b"die-4/hold") == 1
    found = await look(tmp_path)
    assert found.recovery.carried == tuple(CELLS)
    assert [stamped.input for stamped in found.recovery.inputs][-2:] == [signal(7), signal(8)]
    assert (found.recovery.carried_at_seq, found.recovery.carried_at_ns) == (3, 3)
    (damage,) = found.recovery.damages
    assert (damage.lost, damage.is_whole) == (("2 records of the live state",), False)
    assert (await look(tmp_path)).recovery.carried == tuple(CELLS)
    assert len(set_aside_in(tmp_path)) == 1


async def test_an_empty_base_is_no_lost_one(tmp_path: Path) -> None:
    await with_a_newer_base_in_the_log(tmp_path, [])
    with (tmp_path / "store.db-wal").open("ab") as log:
        log.write(bytes(24 + 4096))
    overwrite(tmp_path / "store.db", 0, 4)
    found = await look(tmp_path)
    assert (found.recovery.carried, [each.input for each in found.recovery.inputs]) == ((), [signal(8)])


async def test_what_is_left_but_does_not_open_either_is_begun_anew_and_the_first_file_is_kept(
    tmp_path: Path,
) -> None:
    await fill(tmp_path)
    spoil(INPUT, 5, cut)(tmp_path)
    await look(tmp_path)
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        as_ours(connection)
        connection.execute("UPDATE damage SET doubtful = X'C1'")
        row = ", ".join(DAMAGE.columns)
        connection.execute(f"UPDATE damage SET checksum = row_checksum('{DAMAGE.label}', {row})")
        connection.commit()
    (first,) = set_aside_in(tmp_path)
    for _ in range(4):
        found = await look(tmp_path)
        assert (found.durable, found.recovery.carried, found.recovery.inputs) == (True, (), ())
        (damage,) = found.recovery.damages
        assert (damage.lost, damage.is_whole) == (("everything",), False)
        assert "what was left of it does not open either" in damage.why
        assert set_aside_in(tmp_path) == sorted([first, tmp_path / damage.aside])


async def test_a_log_without_its_file_gives_back_what_it_holds(
    tmp_path: Path, start_child: StartChild
) -> None:
    child = await start_child(tmp_path)
    await child.hear()
    await child.ask("commit", count=5)
    await child.kill()
    (tmp_path / "store.db").unlink()
    found = await look(tmp_path)
    assert [stamped.input for stamped in found.recovery.inputs] == [signal(at) for at in range(1, 6)]
    (damage,) = found.recovery.damages
    assert damage.why == "the file is gone, and its log is there"


async def test_the_checksum_of_a_state_is_none_of_a_later_schema() -> None:
    row = (1, *("u", 1, "m"), *(0,) * 6, *(None,) * 4, *(0,) * 4)
    later, before = (replace(STATE, label=f"state {SCHEMA_VERSION + step}") for step in (1, -1))
    assert not STATE.is_sealed(later.sealed(row))
    assert STATE.is_sealed(STATE.sealed(row))
    assert STATE.is_sealed(before.sealed(row))


def places(size: int) -> Iterator[int]:
    """The first bytes of each page, where its pointers are, and some of all the others."""
    yield from range(0, 100, 3)
    for page in range(0, size, 4096):
        yield from range(page, page + 16)
    yield from random.Random(0).sample(range(size), FLIPS)


async def test_whatever_byte_is_wrong_it_opens_and_tells_what_is_lost(tmp_path: Path) -> None:
    before = await fill(tmp_path)
    file = tmp_path / "store.db"
    whole = file.read_bytes()
    for at in places(len(whole)):
        for old in names_in(tmp_path):
            (tmp_path / old).unlink()
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        found = await look(tmp_path)
        check(found, before, at)


def check(found: Look, before: StoreRecovery, at: int) -> None:
    """What is not as before is reported, and it is no more than what stands at one byte."""
    recovery, place = found.recovery, f"byte {at}"
    assert found.durable, place
    inputs = [each for each in recovery.inputs if not isinstance(each.input, Tick)]
    missing = len(before.carried) + len(before.inputs) - len(recovery.carried) - len(inputs)
    assert missing in (0, 1), place
    assert [each for each in recovery.carried if each not in before.carried] == [], place
    assert [each for each in inputs if each not in before.inputs] == [], place
    if missing:
        assert recovery.damages, place
    if len(recovery.carried) < len(before.carried):
        assert not all(damage.is_whole for damage in recovery.damages), place
    unread = 6 - len(found.events)
    assert unread in (0, 1), place
    if unread:
        assert found.damaged_events or any(
            "event" in words for each in recovery.damages for words in each.lost
        ), place
    if not found.consumers or not found.audited or recovery.cursors != before.cursors:
        assert recovery.damages or not found.audited, place
