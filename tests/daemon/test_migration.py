"""A store of an earlier version, opened by this one: nothing that was decided is forgotten.

``fixtures/stores/schema-1`` was written by the last version of that schema: every kind of live cell in its
base, every kind of input after it, and the view as that version had it at the end.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from nodeagent.daemon.rebuild import RebuildResult, load_catalogs, rebuild
from nodeagent.store import tags
from nodeagent.store.layout import SCHEMA_VERSION
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Transaction
from tests.daemon.former_stores import (
    by_id,
    in_present_terms,
    known_then,
    no_stand_in,
    unpacked,
    view_of_then,
)
from tests.store.samples import PATIENT

FORMER: Final = Path(__file__).parents[1] / "fixtures/stores/schema-1"

WRITTEN_WALL_NS: Final = 1_790_000_153_000_000_000

NEVER_READ: Final = {"die9": "UNKNOWN"}
"""Listed after the last read: that version took it for well."""

CELLS_SINCE: Final = {"Baseline", "CommonCause", "Job", "Withdrawn"}
INPUTS_SINCE: Final = {
    "BaselineSeen",
    "JobBegun",
    "JobEnded",
    "JobSaid",
    "PublicFaults",
    "ResetsRecorded",
    "SourceAbsent",
}
"""Kinds that the version of then did not know."""

NEVER_STORED: Final = {"ActionStarted", "Tick"}
"""Kinds of input that nothing stores, but for a repair."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return unpacked(FORMER, tmp_path)


async def opened(state: Path) -> tuple[Ledger, RebuildResult]:
    ledger = Ledger(state, "machine-a", limits=PATIENT, wall_ns=lambda: WRITTEN_WALL_NS)
    recovery = await ledger.open()
    return ledger, await rebuild(ledger, recovery, await load_catalogs(ledger, recovery, no_stand_in))


def the_view_of_then() -> dict[str, Any]:
    view: dict[str, Any] = json.loads((FORMER / "view.json").read_text())
    return view


def test_the_store_of_then_holds_every_kind_of_cell_and_input(state: Path) -> None:
    with closing(sqlite3.connect(state / "store.db")) as connection:
        cells = {kind for (kind,) in connection.execute("SELECT kind FROM carried")}
        inputs = {kind for (kind,) in connection.execute("SELECT kind FROM input")}
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert tags.CELLS.keys() - cells == CELLS_SINCE
    assert tags.INPUTS.keys() - inputs == NEVER_STORED | INPUTS_SINCE


async def test_all_that_was_open_then_is_open_now(state: Path) -> None:
    ledger, rebuilt = await opened(state)
    assert (ledger.durable, rebuilt.damages) == (True, ())
    assert [(event.device_id, event.verdict) for event in rebuilt.differences.events] == [*NEVER_READ.items()]
    now = view_of_then(rebuilt.engine.view())
    then = the_view_of_then()
    for part in ("conditions", "promotions", "holds", "resets", "sources"):
        assert known_then(by_id(now[part]), by_id(then[part])) == in_present_terms(by_id(then[part])), part
    verdicts = {each["id"]: each["verdict"] for each in then["devices"]} | NEVER_READ
    assert {each["id"]: each["verdict"] for each in now["devices"]} == verdicts
    await ledger.close()


async def test_consumers_audit_and_history_are_kept_and_the_line_of_numbers_goes_on(state: Path) -> None:
    with closing(sqlite3.connect(state / "store.db")) as connection:
        uuid, epoch, last = connection.execute("SELECT uuid, epoch, last_seq FROM state").fetchone()
    ledger, _ = await opened(state)
    assert (ledger.store_id.uuid, ledger.store_id.epoch, ledger.last_seq) == (uuid, epoch, last)
    assert [(one.name, one.owner, one.seq) for one in ledger.consumers()] == [
        ("prometheus-adapter", "unix", 11),
        ("slurm", "uid:0", 12),
        ("volcano", "unix", 10),
    ]
    assert [row[4] for row in await ledger.read_audit()] == ["npu4", "npu5"]
    assert [event.seq for event in await ledger.read_events(0)] == list(range(1, last + 1))
    await ledger.close()


async def test_what_was_migrated_is_read_as_any_other_and_its_rows_prove_themselves(state: Path) -> None:
    ledger, _ = await opened(state)
    await ledger.close()
    with closing(sqlite3.connect(state / "store.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        for table in ("state", "carried", "cursor", "catalog", "consumer"):
            assert connection.execute(f"SELECT COUNT(*) FROM {table} WHERE checksum IS NULL").fetchone() == (
                0,
            )
        connection.execute("UPDATE carried SET body = X'C1' WHERE kind = 'Hold' AND ordinal % 2 = 0")
        assert connection.execute("SELECT CHANGES()").fetchone()[0] > 0
        connection.commit()
    ledger, rebuilt = await opened(state)
    assert {hold.id for hold in rebuilt.engine.view().holds} == {
        each["id"] for each in the_view_of_then()["holds"]
    }
    assert [damage.is_whole for damage in rebuilt.damages] == [False]
    await ledger.close()


async def test_a_store_of_then_that_is_damaged_gives_back_what_is_left(state: Path) -> None:
    with (state / "store.db").open("r+b") as file:
        file.write(bytes(100))
    ledger, rebuilt = await opened(state)
    now = {each.id for each in rebuilt.engine.view().holds}
    assert now == {each["id"] for each in the_view_of_then()["holds"]}
    assert len(rebuilt.damages) == 1
    await ledger.close()


@pytest.mark.parametrize(
    "change",
    [
        *(
            f"UPDATE state SET {column} = 'abc'"
            for column in (
                *("epoch", "opened_wall_ns", "last_seq", "last_input", "last_audit", "oldest_seq"),
                *("engine_now_ns", "anchor_boottime_ns", "anchor_rule_ns", "anchor_wall_ns"),
                *("base_input", "base_seq", "base_ns"),
            )
        ),
        "UPDATE state SET uuid = X'00'",
        "UPDATE state SET anchor_boot_id = X'00'",
        "UPDATE consumer SET seq = 'abc' WHERE name = 'volcano'",
        "UPDATE consumer SET owner = X'00' WHERE name = 'volcano'",
        "UPDATE cursor SET seq = 'abc'",
        "INSERT INTO catalog VALUES ('d', 99, 'loaded', 'a text')",
    ],
)
async def test_a_value_of_another_type_in_a_store_of_then_is_damage_and_is_told(
    state: Path, change: str
) -> None:
    with closing(sqlite3.connect(state / "store.db")) as connection:
        assert connection.execute(change).rowcount
        connection.commit()
    ledger, rebuilt = await opened(state)
    now = {each.id for each in rebuilt.engine.view().holds}
    assert now == {each["id"] for each in the_view_of_then()["holds"]}
    assert len(rebuilt.damages) == 1
    assert (await ledger.commit(Transaction(reports_damage=True))).durable
    assert await ledger.compact(rebuilt.engine.carry(), rebuilt.engine.now_ns)
    assert [event.seq for event in await ledger.read_events(0)] == list(range(1, ledger.last_seq + 1))
    await ledger.close()
    ledger, rebuilt = await opened(state)
    assert (ledger.durable, rebuilt.damages) == (True, ())
    await ledger.close()
