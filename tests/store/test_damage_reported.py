"""Damage is told until somebody has been told, and a repair that was interrupted is finished."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.store.disk.repair import finish
from nodeagent.store.layout import INPUT
from nodeagent.store.ledger import Ledger
from tests.store.damaged import CELLS, cut, fill, look, overwrite, spoil
from tests.store.samples import (
    MACHINE,
    PATIENT,
    WALL_NS,
    names_in,
    signal,
    transaction,
)


async def test_damage_is_found_again_until_it_was_told(tmp_path: Path) -> None:
    await fill(tmp_path)
    spoil(INPUT, 5, cut)(tmp_path)
    first = (await look(tmp_path)).recovery.damages
    assert (await look(tmp_path, reports_damage=True)).recovery.damages == first != ()
    assert (await look(tmp_path)).recovery.damages == ()


async def test_a_second_damage_is_told_beside_the_first(tmp_path: Path) -> None:
    await fill(tmp_path)
    spoil(INPUT, 5, cut)(tmp_path)
    await look(tmp_path)
    spoil(INPUT, 6, cut)(tmp_path)
    assert [damage.why for damage in (await look(tmp_path)).recovery.damages] == [
        "input 5 is not as it was written",
        "input 6 is not as it was written",
    ]


async def test_damage_found_while_running_keeps_the_numbers_and_goes_on_from_the_live_cells(
    tmp_path: Path,
) -> None:
    before = await fill(tmp_path)
    changes: asyncio.Queue[bool] = asyncio.Queue()
    ledger = Ledger(
        tmp_path,
        MACHINE,
        limits=replace(PATIENT, retry_s=0.02),
        carry=lambda: CELLS,
        wall_ns=lambda: WALL_NS,
        on_durability_change=lambda: changes.put_nowait(ledger.durable),
    )
    await ledger.open()
    spoil_all_but_the_first_page(tmp_path / "store.db")
    with pytest.raises(Exception, match="malformed"):
        await ledger.read_events(0)
    assert [await changes.get(), await changes.get()] == [False, True]
    (damage,) = ledger.damages
    assert damage.is_whole
    committed = await ledger.commit(replace(transaction(7), reports_damage=True))
    assert (committed.last_seq, committed.durable) == (7, True)
    assert committed.store_id.uuid == before.store_id.uuid
    assert committed.store_id.epoch > before.store_id.epoch
    await ledger.close()
    found = await look(tmp_path)
    assert found.recovery.carried == tuple(CELLS)
    assert [stamped.input for stamped in found.recovery.inputs] == [signal(7)]
    assert (found.events, found.recovery.damages) == ([7], ())


def spoil_all_but_the_first_page(file: Path) -> None:
    overwrite(file, 4096, file.stat().st_size - 4096)


async def test_a_repair_that_dies_before_the_new_file_has_the_name_is_finished_by_the_next(
    tmp_path: Path,
) -> None:
    before = await fill(tmp_path)
    (tmp_path / "store.db").rename(tmp_path / "store.db.new")
    (tmp_path / "store.db-wal").write_bytes(b"of the damaged file")
    found = await look(tmp_path)
    assert (found.recovery.inputs, found.recovery.damages) == (before.inputs, ())
    assert not (tmp_path / "store.db.new").exists()


async def test_a_new_file_that_was_not_finished_is_thrown_away(tmp_path: Path) -> None:
    before = await fill(tmp_path)
    (tmp_path / "store.db.new").write_bytes(b"half")
    finish(tmp_path / "store.db")
    assert [name for name in names_in(tmp_path) if ".new" in name] == []
    assert (await look(tmp_path)).recovery.inputs == before.inputs
