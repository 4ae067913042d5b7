"""A store as a life of the daemon leaves it behind: faults of sixteen GPUs, through the real engine."""

import asyncio
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from nodeagent.config.load import load_config
from nodeagent.core.engine import Engine
from nodeagent.core.model import Assertion, CatalogChanged, Event, Input, Signal, Started
from nodeagent.daemon.pump import COMPACT_BEYOND_INPUTS
from nodeagent.daemon.systemd import boot_id, machine_id
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import ClockAnchor, Stamped, Transaction
from nodeagent.tables.canonical import encode_catalog
from nodeagent.tables.load import load_catalog
from tests.bench.shared.daemon import ROOT

INPUTS = 100_000
APART_NS = 800_000_000
A_COMMIT = 250
DEVICES = 16
XIDS = (13, 31, 43, 45, 48, 63, 74, 94, 109, 119)


def make(directory: Path, *, compacted: bool, inputs: int = INPUTS) -> None:
    """Fill the state folder of a daemon in ``directory``. ``compacted`` false: as if it never had been."""
    state = directory / "state"
    state.mkdir()
    asyncio.run(_live(state, compacted, inputs))


async def _live(state: Path, compacted: bool, count: int) -> None:
    """The pump's work without its waiting: a day of faults, one each 0.8 s, ending now."""
    ledger = Ledger(state, machine_id())
    await ledger.open()
    catalog = load_catalog([ROOT / "fault_codes"], load_config(None, {}).settings()).catalog
    await ledger.put_catalog(catalog.digest, encode_catalog(catalog), "for a benchmark")
    engine = Engine({catalog.digest: catalog})
    now_ns = time.time_ns() - count * APART_NS
    story = _story(catalog.digest)
    while turn := list(islice(story, min(A_COMMIT, count))):
        count -= len(turn)
        recorded: list[Stamped] = []
        events: list[tuple[int, Event]] = []
        for given in turn:
            now_ns += APART_NS
            outcome = engine.step(now_ns, given)
            recorded += [Stamped(rule_ns=now_ns, wall_ns=now_ns, input=each) for each in outcome.records]
            events += [(event.at_ns, event) for event in outcome.events]
        await ledger.commit(
            Transaction(
                inputs=tuple(recorded),
                events=tuple(events),
                engine_now_ns=engine.now_ns,
                anchor=_anchor(now_ns),
            )
        )
        if compacted and ledger.inputs_since_base > COMPACT_BEYOND_INPUTS:
            await ledger.compact(engine.carry(), engine.now_ns, _anchor(now_ns))
    await ledger.close()


def _anchor(rule_ns: int) -> ClockAnchor:
    """The daemon's clock begins at the wall time, so the two are one until the wall clock is set."""
    boottime_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return ClockAnchor(boot_id=boot_id(), boottime_ns=boottime_ns, rule_ns=rule_ns, wall_ns=rule_ns)


def _story(digest: str) -> Iterator[Input]:
    """Every input changes the state, so that each one is stored."""
    yield Started(boot_id=boot_id(), version="bench")
    yield CatalogChanged(digest=digest)
    number = 0
    while True:
        number += 1
        xid = XIDS[number // DEVICES % len(XIDS)]
        yield Signal(
            source="kmsg",
            device=f"0000:{number % DEVICES:02x}:00.0",
            code=f"XID_{xid}",
            assertion=Assertion.ONCE,
            evidence={"line": f"NVRM: Xid (PCI:0000:{number % DEVICES:02x}:00): {xid}, pid={number}"},
        )
