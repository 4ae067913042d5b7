"""A daemon's own store is judged again: as it was then, or under other tables, and never written to."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeagent.config.load import load_config
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    NODE,
    Assertion,
    CatalogChanged,
    DeviceSeen,
    Input,
    Kind,
    Signal,
    SourceBack,
    Started,
)
from nodeagent.store.layout import SCHEMA_VERSION
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import ClockAnchor, Stamped, StoredEvent, Transaction
from nodeagent.tables.canonical import encode_catalog
from nodeagent.tables.load import load_catalog
from tests.cli.conftest import ROOT, Nodeagent, Ran, events_of
from tests.harness.node import Node, xid_line
from tests.store.samples import PATIENT, make_the_catalogs_texts

RULE_NS = 1_767_323_045_000_000_000
"""2026-01-02T03:04:05Z."""

AHEAD_NS = 3600 * 1_000_000_000
SECOND_NS = 1_000_000_000
LOST = """
kind = "chip"
vendor = "ascend"

[codes.80E00001]
name = "request lost"
level = "{level}"
clear_on = ["recover"]
description = "One inference request failed."
action = "Run the request again."
"""


class Life:
    """A daemon's work in this process: an engine, a ledger, a wall clock an hour ahead of the rule clock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[StoredEvent] = []
        self._ledger = Ledger(folder, "machine", limits=PATIENT)
        self._catalogs: dict[str, Catalog] = {}
        self._engine = Engine(self._catalogs)
        self._now_ns = RULE_NS

    async def begin(self) -> None:
        await self._ledger.open()
        await self.take(0, Started(boot_id="boot-1", version="1"))

    async def judge_by(self, level: str) -> None:
        catalog = catalog_of(self.folder.parent / level, level)
        self._catalogs[catalog.digest] = catalog
        await self._ledger.put_catalog(catalog.digest, encode_catalog(catalog), "test")
        await self.take(0, CatalogChanged(digest=catalog.digest))

    async def take(self, after_s: int, given: Input) -> None:
        self._now_ns += after_s * SECOND_NS
        outcome = self._engine.step(self._now_ns, given)
        wall_ns = self._now_ns + AHEAD_NS
        committed = await self._ledger.commit(
            Transaction(
                inputs=tuple(
                    Stamped(rule_ns=self._now_ns, wall_ns=wall_ns, input=each) for each in outcome.records
                ),
                events=tuple((event.at_ns + AHEAD_NS, event) for event in outcome.events),
                engine_now_ns=self._engine.now_ns,
                anchor=ClockAnchor(boot_id="boot-1", boottime_ns=1, rule_ns=self._now_ns, wall_ns=wall_ns),
            )
        )
        self.events += committed.events

    async def compact(self) -> None:
        await self._ledger.compact(self._engine.carry(), self._engine.now_ns)

    async def end(self) -> None:
        await self._ledger.close()


def catalog_of(folder: Path, level: str) -> Catalog:
    folder.mkdir(exist_ok=True)
    (folder / "own.toml").write_text(LOST.format(level=level))
    return load_catalog((ROOT / "fault_codes", folder), load_config(None, {}).settings()).catalog


def lost(assertion: Assertion = Assertion.OCCUR, device: str = "npu0") -> Signal:
    return Signal(source="ascend", device=device, code="80E00001", assertion=assertion)


def chip(device: str) -> DeviceSeen:
    return DeviceSeen(
        source="ascend", device=device, kind=Kind.CHIP, vendor="ascend", identity=f"die-{device}"
    )


def unnumbered(event: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key != "seq"}


@pytest.fixture
async def life(tmp_path: Path) -> Life:
    """Two chips; a fault under mild tables, the same under strict ones."""
    life = Life(tmp_path / "state")
    await life.begin()
    await life.judge_by("RestartRequest")
    await life.take(1, chip("npu0"))
    await life.take(0, chip("npu1"))
    await life.take(0, SourceBack(source="ascend"))
    await life.take(1, lost())
    await life.take(10, lost(Assertion.RECOVER))
    await life.judge_by("SeparateNPU")
    await life.take(10, lost())
    return life


@pytest.fixture
def replay_store(nodeagent: Nodeagent, tmp_path: Path) -> Callable[..., Ran]:
    def run(*options: str | Path) -> Ran:
        return nodeagent("replay", tmp_path / "state", "-o", "json", *options)

    return run


def about_faults(ran: Ran) -> list[str]:
    return [line for line in events_of(ran) if " 80E00001 " in line]


MILD = "04:04:07.000000Z raised npu0 80E00001 RestartRequest NO_NEW_JOBS RERUN_REQUEST"
CLEARED = "04:04:17.000000Z cleared npu0 80E00001 RestartRequest ALLOW NONE"
STRICT = "04:04:27.000000Z raised npu0 80E00001 SeparateNPU ISOLATE RESCHEDULE"


async def test_each_input_is_judged_by_the_tables_of_its_time_and_reported_at_its_wall_time(
    life: Life, replay_store: Callable[..., Ran]
) -> None:
    await life.end()

    assert about_faults(replay_store()) == [MILD, CLEARED, STRICT]


async def test_other_tables_judge_all_of_it(
    life: Life, replay_store: Callable[..., Ran], tmp_path: Path
) -> None:
    await life.end()

    ran = replay_store("--tables", tmp_path / "SeparateNPU")

    assert about_faults(ran) == [
        "04:04:07.000000Z raised npu0 80E00001 SeparateNPU ISOLATE RESCHEDULE",
        "04:04:17.000000Z cleared npu0 80E00001 SeparateNPU ALLOW NONE",
        STRICT,
    ]
    assert {event["kind"] for event in ran.json} == {
        "started",
        "device_seen",
        "verdict_changed",
        "raised",
        "cleared",
    }


async def test_other_tables_are_compared_with_those_of_the_time(
    life: Life, replay_store: Callable[..., Ran], tmp_path: Path
) -> None:
    await life.end()

    ran = replay_store("--compare", tmp_path / "SeparateNPU")

    assert [
        (line["only_in"], line["event"]["kind"], line["event"]["condition_level"]) for line in ran.json
    ] == [
        ("tables", "raised", "RestartRequest"),
        ("compare", "raised", "SeparateNPU"),
        ("tables", "cleared", "RestartRequest"),
        ("compare", "cleared", "SeparateNPU"),
    ]


async def test_what_is_reported_equals_what_was_reported(
    life: Life, replay_store: Callable[..., Ran]
) -> None:
    await life.take(3600, lost(Assertion.RECOVER))
    await life.end()

    ran = replay_store()

    assert [(event["kind"], event["device"], event["code"], event["why"]) for event in ran.json] == [
        (str(one.event.kind), one.event.device, one.event.code, one.event.why) for one in life.events
    ]


async def test_the_store_of_a_running_daemon_is_read_and_its_files_stay_as_they_are(
    life: Life, nodeagent_process: Nodeagent, tmp_path: Path
) -> None:
    before = {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()}
    assert {"store.db-wal", "store.db-shm"} <= before.keys()

    ran = nodeagent_process("replay", tmp_path / "state", "-o", "json")

    assert about_faults(ran) == [MILD, CLEARED, STRICT]
    assert {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()} == before
    await life.end()


async def test_a_copy_of_a_killed_daemons_store_is_read_with_its_log(
    life: Life, nodeagent: Nodeagent, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("store.db", "store.db-wal"):
        shutil.copyfile(tmp_path / "state" / name, copy / name)
    await life.end()

    assert about_faults(nodeagent("replay", copy / "store.db", "-o", "json")) == [MILD, CLEARED, STRICT]

    assert sorted(path.name for path in copy.iterdir()) == ["store.db", "store.db-wal"]


async def test_where_only_the_base_is_left_what_is_open_is_carried_on(
    life: Life, replay_store: Callable[..., Ran], tmp_path: Path
) -> None:
    await life.compact()
    await life.end()
    only_base(tmp_path)

    assert events_of(replay_store()) == []
    assert about_faults(replay_store("--tables", tmp_path / "RestartRequest")) == [
        "04:04:27.000000Z level_changed npu0 80E00001 RestartRequest NO_NEW_JOBS RERUN_REQUEST",
    ]


async def test_what_began_before_the_oldest_input_is_reported_to_be_unknown(
    life: Life, replay_store: Callable[..., Ran], tmp_path: Path
) -> None:
    await life.compact()
    await life.end()
    with sqlite3.connect(tmp_path / "state" / "store.db") as connection:
        connection.execute("DELETE FROM input WHERE number <= 6")
    connection.close()

    ran = replay_store()

    assert [event["kind"] for event in ran.json if event["device"] != NODE] == ["raised"]
    assert ran.err == (
        f"{tmp_path}/state/store.db: inputs before number 7 are no longer stored: "
        "what was open then, or counted then, is not known\n"
    )


def only_base(folder: Path) -> None:
    with sqlite3.connect(folder / "state" / "store.db") as connection:
        connection.execute("DELETE FROM input")
    connection.close()


async def test_an_input_that_cannot_be_read_is_named_and_nothing_is_shown(
    life: Life, replay_store: Callable[..., Ran], tmp_path: Path
) -> None:
    await life.end()
    with sqlite3.connect(tmp_path / "state" / "store.db") as connection:
        connection.execute("UPDATE input SET body = x'ff' WHERE number = 3")
    connection.close()

    ran = replay_store()

    assert (ran.status, ran.out) == (1, "")
    assert "store.db: cannot be read as a store of nodeagent: input 3: an input of kind " in ran.err


async def test_a_catalog_that_is_not_as_it_was_written_is_named(
    life: Life, replay_store: Callable[..., Ran], tmp_path: Path
) -> None:
    await life.end()
    make_the_catalogs_texts(tmp_path / "state")

    ran = replay_store()

    assert (ran.status, ran.out) == (1, "")
    assert "store.db: cannot be read as a store of nodeagent: catalog " in ran.err
    assert "is not as it was written" in ran.err


def test_a_folder_without_a_store_and_without_a_log_is_refused(nodeagent: Nodeagent, tmp_path: Path) -> None:
    ran = nodeagent("replay", tmp_path / "empty")
    assert (ran.status, ran.out) == (1, "")

    (tmp_path / "empty").mkdir()
    ran = nodeagent("replay", tmp_path / "empty")

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(
        f"nodeagent: {tmp_path}/empty: no kernel log in it, nor a store of nodeagent; looked for: journal, "
    )


def other_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (x)")
    connection.close()


def no_database(path: Path) -> None:
    path.write_bytes(b"not a database at all, whatever its name is" * 100)


def cut_off(path: Path) -> None:
    other_database(path)
    path.write_bytes(path.read_bytes()[:60])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (other_database, f"its schema is version 0, this nodeagent knows {SCHEMA_VERSION}"),
        (no_database, "file is not a database"),
        (cut_off, f"its schema is version 0, this nodeagent knows {SCHEMA_VERSION}"),
    ],
    ids=["another database", "no database", "cut off"],
)
def test_a_file_that_is_no_store_is_refused(
    nodeagent: Nodeagent, tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    make(tmp_path / "store.db")

    ran = nodeagent("replay", tmp_path / "store.db")

    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (f"nodeagent: {tmp_path}/store.db: cannot be read as a store of nodeagent: {reason}\n")


def test_the_store_of_a_real_daemon_gives_the_same_events_again(tmp_path: Path, nodeagent: Nodeagent) -> None:
    node = Node.within(tmp_path)
    with node.daemon() as stream:
        for xid in (79, 48):
            node.write(xid_line(xid))
            stream.until(f"XID_{xid}")
        events = nodeagent("events", "-o", "json").out
        again = nodeagent("replay", tmp_path / "state", "-o", "json")

    assert [unnumbered(event) for event in again.json] == [
        unnumbered(json.loads(line)) for line in events.splitlines()
    ]
