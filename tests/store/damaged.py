"""A filled store, what may be done to its file, and what a start finds then."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from nodeagent.core.model import Carried, Hold
from nodeagent.store.layout import Table
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import StoreRecovery
from tests.store.samples import (
    MACHINE,
    PATIENT,
    WALL_NS,
    condition,
    transaction,
)


def hold(number: int) -> Carried:
    return Carried(
        cell=Hold(
            id=f"die-{number}/hold", device_id=f"die-{number}", owner="uid:0", reason="RMA", since_ns=number
        )
    )


CELLS = [condition(1), hold(2), hold(3)]


async def fill(directory: Path) -> StoreRecovery:
    """Three cells in the base, three inputs since, six events, an entry of the audit log, a consumer, a
    catalog.
    """
    ledger = Ledger(directory, MACHINE, limits=PATIENT, wall_ns=lambda: WALL_NS)
    await ledger.open()
    for number in range(1, 4):
        await ledger.commit(transaction(number))
    await ledger.put_catalog("d1", b"tables" * 2000, "loaded")
    await ledger.compact(CELLS, 3)
    for number in range(4, 7):
        await ledger.commit(transaction(number))
    await ledger.ack("volcano", "uid:0", ledger.store_id, 5)
    await ledger.audit(WALL_NS, "uid 0", "IsolateDevice", "npu2", "isolated: RMA")
    await ledger.close()
    return (await look(directory)).recovery


@dataclass(frozen=True)
class Look:
    """What a start finds, and what can be read then."""

    recovery: StoreRecovery
    durable: bool
    events: list[int]
    damaged_events: int
    consumers: list[str]
    audited: list[str]


async def look(directory: Path, reports_damage: bool = False) -> Look:
    ledger = Ledger(directory, MACHINE, limits=PATIENT, wall_ns=lambda: WALL_NS)
    recovery = await ledger.open()
    try:
        if reports_damage:
            reporting = replace(transaction(recovery.last_seq + 1), reports_damage=True)
            assert (await ledger.commit(reporting)).durable
        return Look(
            recovery=recovery,
            durable=ledger.durable,
            events=[event.seq for event in await ledger.read_events(0)],
            damaged_events=ledger.damaged_events,
            consumers=[consumer.name for consumer in ledger.consumers()],
            audited=[row[4] for row in await ledger.read_audit()],
        )
    finally:
        await ledger.close()


def overwrite(file: Path, at: int, size: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(b"\xa5" * size)


def spoil(table: Table, key: int, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Another body in one row, under the checksum of before."""

    def do(directory: Path) -> None:
        with closing(sqlite3.connect(directory / "store.db")) as connection:
            where = f"FROM {table.name} WHERE {table.columns[0]} = {key}"
            (body,) = connection.execute(f"SELECT body {where}").fetchone()
            connection.execute(
                f"UPDATE {where.removeprefix('FROM ').replace(' WHERE', ' SET body = ? WHERE')}",
                (change(body),),
            )
            connection.commit()

    return do


def change_a_letter(body: bytes) -> bytes:
    return body.replace(b"RMA", b"RNA").replace(b"npu0", b"npu1")


def cut(body: bytes) -> bytes:
    return body[:-3]
