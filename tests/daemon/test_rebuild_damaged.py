"""A start from a damaged store: whatever was open stays open, and what nobody can know is said."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Catalog, ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.model import CatalogChanged, Input, Kind, Level, Started, Verdict
from nodeagent.daemon.clock import carry_on
from nodeagent.daemon.pump import Pump
from nodeagent.daemon.rebuild import RebuildResult, load_catalogs, rebuild
from nodeagent.store.errors import StoreUnreadableError
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.layout import CARRIED, EVENT, INPUT, Table
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Stamped, Transaction
from nodeagent.tables.canonical import encode_catalog, with_digest
from tests.core.build import HBM, active, back, catalog, ns, order, repeat, row, seen, signal, xid
from tests.store.samples import PATIENT, make_the_catalogs_texts
from tests.waiting import until

XID = "XID_79"
TABLES = with_digest(
    catalog(
        row(HBM, Level.RESTART_NPU),
        row(XID, Level.SEPARATE_NPU, clear_on=ClearOn(reboot=True)),
        row("store_damaged", kind=Kind.HOST, clear_on=ClearOn(operator=True)),
        frequency=[repeat(HBM, 2)],
    )
)

SAID: Sequence[tuple[float, Input]] = (
    (0, CatalogChanged(digest=TABLES.digest)),
    (0, Started(boot_id="boot-1", version="1")),
    *((1, seen(f"npu{index}", f"die{index}", f"0000:0{index}:00.0")) for index in range(5)),
    (1, back()),
    (2, order("isolate", "npu0", who="uid:0")),
    (3, signal(HBM, "occur", "npu1")),
    (4, signal(HBM, "recover", "npu1")),
    (5, signal(HBM, "occur", "npu1")),
    (6, signal(HBM, "recover", "npu1")),
    (7, xid(XID, "0000:02:00.0")),
    (8, order("quiesce", "node", who="uid:0")),
    (9, order("isolate", "npu3", who="uid:1000")),
    (10, order("release", "npu3", who="uid:1000")),
)
"""npu0 is isolated by a person, npu1 by repetition, npu2 by a kernel line, the node is quiesced, npu3 is
back.
"""

OUT = {"npu0": Verdict.ISOLATE, "npu1": Verdict.ISOLATE, "npu2": Verdict.ISOLATE}


async def live(folder: Path, compacted_at: int) -> None:
    """The life of a daemon; its base is the sum of the first so many inputs."""
    ledger, engine = Ledger(folder, "machine", limits=PATIENT), Engine({TABLES.digest: TABLES})
    await ledger.open()
    await ledger.put_catalog(TABLES.digest, encode_catalog(TABLES), "start")
    for number, (at_s, given) in enumerate(SAID):
        outcome = engine.step(ns(at_s), given)
        await ledger.commit(
            Transaction(
                inputs=tuple(
                    Stamped(rule_ns=ns(at_s), wall_ns=ns(at_s), input=one) for one in outcome.records
                ),
                events=tuple((event.at_ns, event) for event in outcome.events),
                engine_now_ns=engine.now_ns,
            )
        )
        if number == compacted_at:
            await ledger.compact(engine.carry(), engine.now_ns)
    await ledger.close()


@dataclass
class Next:
    """The next daemon, as far as its rebuild goes."""

    rebuilt: RebuildResult

    @property
    def verdicts(self) -> dict[str, Verdict]:
        views = self.rebuilt.engine.view().devices
        return {view.name: view.verdict for view in views if view.verdict is not Verdict.ALLOW}

    @property
    def is_quiesced(self) -> bool:
        return any(hold.kind == "quiesce" for hold in self.rebuilt.engine.view().holds)


async def no_stand_in() -> Catalog:
    return TABLES


@asynccontextmanager
async def next_life(folder: Path) -> AsyncIterator[Next]:
    ledger = Ledger(folder, "machine", limits=PATIENT)
    recovery = await ledger.open()
    known = await load_catalogs(ledger, recovery, no_stand_in)
    rebuilt = await rebuild(ledger, recovery, known)
    yield Next(rebuilt)
    await ledger.compact(rebuilt.engine.carry(), rebuilt.engine.now_ns)
    await ledger.commit(Transaction(reports_damage=True))
    await ledger.close()


def beyond_reading(_: bytes) -> bytes:
    return b"\xc1"


def by_a_letter(body: bytes) -> bytes:
    return body.replace(b"bench", b"bemch")


def spoil(folder: Path, table: Table, where: str, how: Callable[[bytes], bytes] = beyond_reading) -> int:
    """Rows that are no longer what they were; how many."""
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        connection.create_function("spoilt", 1, how)
        spoilt = connection.execute(f"UPDATE {table.name} SET body = spoilt(body) WHERE {where}").rowcount
        connection.commit()
    return spoilt


def of_kind(kind: str) -> str:
    return f"kind = '{kind}'"


EARLY, LATE = 3, len(SAID) - 1


async def test_an_undamaged_store_is_rebuilt_as_it_was(tmp_path: Path) -> None:
    await live(tmp_path, EARLY)
    async with next_life(tmp_path) as found:
        assert (found.verdicts, found.is_quiesced) == (OUT, True)
        assert (found.rebuilt.damages, found.rebuilt.restored) == ((), ())


@pytest.mark.parametrize(
    ("at", "table", "kind"),
    [
        (EARLY, INPUT, "Operator"),
        (EARLY, INPUT, "Signal"),
        (LATE, CARRIED, "Hold"),
        (LATE, CARRIED, "Promotion"),
        (LATE, CARRIED, "Condition"),
        (LATE, CARRIED, "Device"),
        (LATE, CARRIED, "Source"),
        (LATE, CARRIED, "Era"),
    ],
)
async def test_what_the_history_says_is_open_stays_open(
    tmp_path: Path, at: int, table: Table, kind: str
) -> None:
    await live(tmp_path, at)
    assert spoil(tmp_path, table, of_kind(kind))
    async with next_life(tmp_path) as found:
        names = {view.id: view.name for view in found.rebuilt.engine.view().devices}
        isolated = {names[f"die{index}"] for index in range(3)}
        views = found.rebuilt.engine.view().devices
        assert isolated == {view.name for view in views if view.verdict is Verdict.ISOLATE}
        assert found.is_quiesced
        assert found.rebuilt.damages
        assert found.rebuilt.differences.events == () or kind in ("Device", "Source", "Era", "Signal")
    async with next_life(tmp_path) as again:
        assert again.rebuilt.damages == ()
        assert {
            view.id for view in again.rebuilt.engine.view().devices if view.verdict is Verdict.ISOLATE
        } == {*("die0", "die1", "die2")}


async def test_an_isolation_older_than_the_history_stands_if_it_can_still_be_read(tmp_path: Path) -> None:
    await live(tmp_path, LATE)
    forget_the_history(tmp_path)
    spoil(tmp_path, CARRIED, of_kind("Hold"), by_a_letter)
    async with next_life(tmp_path) as found:
        assert (found.verdicts, found.is_quiesced) == (OUT, True)
        reasons = {hold.reason for hold in found.rebuilt.engine.view().holds}
        assert reasons == {"bemch"}
        assert [damage.is_whole for damage in found.rebuilt.damages] == [False]


async def test_an_isolation_of_which_nothing_tells_any_more_is_said_to_be_unknown(tmp_path: Path) -> None:
    await live(tmp_path, LATE)
    forget_the_history(tmp_path)
    spoil(tmp_path, CARRIED, of_kind("Hold"))
    async with next_life(tmp_path) as found:
        (damage,) = found.rebuilt.damages
        assert not damage.is_whole
        assert damage.lost == ("2 records of the live state", "21 events of the history")


def forget_the_history(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        connection.execute("DELETE FROM event")
        connection.commit()
        connection.execute("VACUUM")


async def test_faults_that_were_put_back_end_as_any_other(tmp_path: Path) -> None:
    await live(tmp_path, EARLY)
    spoil(tmp_path, INPUT, of_kind("Signal"))
    async with next_life(tmp_path) as found:
        engine = found.rebuilt.engine
        assert [one.id for one in found.rebuilt.restored] == [f"die1/repeat-{HBM}#1", f"die2/{XID}#1"]
        engine.step(ns(20), order("release", "npu1"))
        engine.step(ns(21), Started(boot_id="boot-2", version="1"))
        engine.step(ns(22), active(device="npu2", source="kmsg", begun_s=21.5))
        assert {view.name for view in engine.view().devices if view.verdict is Verdict.ISOLATE} == {"npu0"}


@pytest.mark.parametrize("spoilt", [INPUT, CARRIED, EVENT])
async def test_what_cannot_be_replayed_is_left_out_and_told(
    tmp_path: Path, spoilt: Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A defect of ours that a stored value brings to light must not end each start."""
    await live(tmp_path, EARLY if spoilt is INPUT else LATE)
    replay: Callable[..., None] = Engine.replay

    def failing(engine: Engine, now_ns: int, given: Input) -> None:
        if (spoilt is INPUT and type(given).__name__ == "Operator") or (
            spoilt is CARRIED and type(getattr(given, "cell", None)).__name__ == "Source"
        ):
            raise KeyError("a defect")
        replay(engine, now_ns, given)

    monkeypatch.setattr(Engine, "replay", failing)
    async with next_life(tmp_path) as found:
        assert {
            view.id for view in found.rebuilt.engine.view().devices if view.verdict is Verdict.ISOLATE
        } == {*("die0", "die1", "die2")}
        if spoilt is EVENT:
            assert found.rebuilt.damages == ()
        else:
            assert [damage.why for damage in found.rebuilt.damages] == [
                "it cannot be replayed: KeyError: 'a defect'"
            ]
            assert "cannot be replayed" in caplog.text


async def test_a_catalog_that_is_not_as_it_was_written_is_replaced_and_isolations_stand(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await live(tmp_path, EARLY)
    make_the_catalogs_texts(tmp_path)
    async with next_life(tmp_path) as found:
        assert (found.verdicts, found.is_quiesced) == (OUT, True)
    assert "is judged by the tables on disk" in caplog.text


async def test_damage_that_is_found_before_the_first_turn_is_told_in_it(tmp_path: Path) -> None:
    await live(tmp_path, EARLY)
    ledger = Ledger(tmp_path, "machine", limits=replace(PATIENT, retry_s=0.02))
    recovery = await ledger.open()
    rebuilt = await rebuild(ledger, recovery, await load_catalogs(ledger, recovery, no_stand_in))
    engine = rebuilt.engine
    ledger.carry = engine.carry
    make_the_catalogs_texts(tmp_path)
    with pytest.raises(StoreUnreadableError, match="not as it was written"):
        await ledger.get_catalog(TABLES.digest)
    await until(lambda: ledger.durable)
    pump = Pump(engine, ledger, EventFeed(), carry_on(recovery.anchor, "boot-1"), lambda: None)
    await pump.begin(rebuilt.differences, ())
    assert "store_damaged" in {condition.code for condition in engine.view().conditions}
    assert ledger.damages == ()
    await ledger.close()
