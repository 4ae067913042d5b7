"""A process with a ledger, driven by JSON lines; what it prints it knows. Arguments: DIRECTORY [LIMITS]."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from nodeagent.core.model import Carried
from nodeagent.store.disk.durability import Limits
from nodeagent.store.disk.retention import RetentionPolicy
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Committed, Transaction
from tests.store.samples import MACHINE, anchor, condition, transaction


def _say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def _orders() -> AsyncIterator[dict[str, Any]]:
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        yield json.loads(line)


class Child:
    def __init__(self, directory: Path, limits: dict[str, Any]) -> None:
        self.number = 0
        self.ledger = Ledger(
            directory,
            MACHINE,
            limits=Limits(**limits),
            keep=RetentionPolicy(retention_ns=2**62),
            carry=self._carry,
            on_durability_change=self._changed,
        )

    async def run(self) -> None:
        recovery = await self.ledger.open()
        self.number = recovery.last_seq
        _say(
            opened=str(recovery.store_id),
            durable=recovery.durable,
            last_seq=recovery.last_seq,
            inputs=len(recovery.inputs),
        )
        async for order in _orders():
            match order["do"]:
                case "number":
                    self.number = order["next"] - 1
                case "commit":
                    self._report([await self._commit() for _ in range(order["count"])])
                case "commit_together":
                    self._report(await asyncio.gather(*(self._commit() for _ in range(order["count"]))))
                case "heartbeat":
                    alive = Transaction(engine_now_ns=self.number, anchor=anchor(self.number + 1))
                    committed = await self.ledger.commit(alive)
                    _say(durable=committed.durable)
                case "flood":
                    while True:
                        self._report([await self._commit()])
                case "read":
                    found = await self.ledger.read_events(order["after"])
                    _say(events=[(one.seq, one.event.at_ns) for one in found], oldest=self.ledger.oldest_seq)
                case "close":
                    await self.ledger.close()
                    _say(closed=True)
                    return

    async def _commit(self) -> Committed:
        self.number += 1
        return await self.ledger.commit(transaction(self.number))

    def _report(self, committed: list[Committed]) -> None:
        last = committed[-1]
        _say(
            committed=[event.seq for one in committed for event in one.events],
            numbers=[event.event.at_ns for one in committed for event in one.events],
            store_id=str(last.store_id),
            durable=last.durable,
        )

    def _carry(self) -> list[Carried]:
        return [condition(self.number)]

    def _changed(self) -> None:
        _say(changed=str(self.ledger.store_id), durable=self.ledger.durable, degraded=self.ledger.degraded)


if __name__ == "__main__":
    asyncio.run(Child(Path(sys.argv[1]), json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}).run())
