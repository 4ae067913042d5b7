"""From the store back to a running engine, also where the store has lost what it was judged under."""

from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.model import Assertion, CatalogChanged, Input, Level, Signal, Started
from nodeagent.daemon.rebuild import load_catalogs, rebuild
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Stamped, Transaction
from nodeagent.tables.canonical import encode_catalog, with_digest
from tests.core.build import catalog, row
from tests.store.samples import PATIENT

TABLES = with_digest(catalog(row("XID_79", Level.SEPARATE_NPU)))
INPUTS: tuple[Input, ...] = (
    Started(boot_id="boot", version="1"),
    CatalogChanged(digest=TABLES.digest),
    Signal(source="kmsg", device="npu0", code="XID_79", assertion=Assertion.ONCE),
)


async def ledger_after(state: Path, *, keep_catalog: bool) -> Ledger:
    """A store that a daemon left behind, opened again by its successor."""
    ledger = Ledger(state, "machine", limits=PATIENT)
    await ledger.open()
    if keep_catalog:
        await ledger.put_catalog(TABLES.digest, encode_catalog(TABLES), "start")
    stamped = tuple(
        Stamped(rule_ns=number, wall_ns=number, input=given) for number, given in enumerate(INPUTS)
    )
    await ledger.commit(Transaction(inputs=stamped, engine_now_ns=len(INPUTS)))
    await ledger.close()
    return Ledger(state, "machine", limits=PATIENT)


async def no_stand_in() -> Catalog:
    raise AssertionError("the stored catalog was at hand")


async def test_stored_inputs_are_judged_under_the_catalog_of_their_time(tmp_path: Path) -> None:
    ledger = await ledger_after(tmp_path, keep_catalog=True)
    recovery = await ledger.open()
    rebuilt = await rebuild(ledger, recovery, await load_catalogs(ledger, recovery, no_stand_in))
    assert [condition.level for condition in rebuilt.engine.view().conditions] == [Level.SEPARATE_NPU]
    await ledger.close()


async def test_a_lost_catalog_is_replaced_by_the_tables_on_disk_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = await ledger_after(tmp_path, keep_catalog=False)
    recovery = await ledger.open()

    async def on_disk() -> Catalog:
        return catalog(row("XID_79", Level.PRE_SEPARATE_NPU))

    rebuilt = await rebuild(ledger, recovery, await load_catalogs(ledger, recovery, on_disk))
    assert [condition.level for condition in rebuilt.engine.view().conditions] == [Level.PRE_SEPARATE_NPU]
    assert f"catalog {TABLES.digest}: the store does not hold it" in caplog.text
    await ledger.close()


async def test_what_was_never_told_is_told_as_rebuilt(tmp_path: Path) -> None:
    ledger = await ledger_after(tmp_path, keep_catalog=True)
    recovery = await ledger.open()
    rebuilt = await rebuild(ledger, recovery, await load_catalogs(ledger, recovery, no_stand_in))
    assert [(event.kind, event.code, event.why) for event in rebuilt.differences.events] == [
        ("raised", "XID_79", "rebuilt")
    ]
    await ledger.close()
