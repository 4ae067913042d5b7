"""A reload meets what nobody foresaw: it is refused and reported, and the daemon serves the next one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from nodeagent.api.control.tables import TablesRefused
from nodeagent.config.load import load_config
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import Settings
from nodeagent.core.model import NODE, Assertion, Input, Signal, TablesRejected
from nodeagent.core.preview import Preview
from nodeagent.daemon.catalogs import Catalogs
from nodeagent.daemon.pump import Pump
from nodeagent.daemon.reload import Reloading
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Taken
from tests.store.samples import PATIENT

ROW = '[codes.X]\nkind = "host"\nname = "x"\nlevel = "NotHandleFault"\nclear_on = ["10m"]\n'
PATIENCE_S = 30.0
REASON = "cannot be loaded, by a defect of nodeagent; report it with the files: ZeroDivisionError('defect')"
SUBMITTED = [
    TablesRejected(reason=REASON),
    Signal(
        source="agent",
        device=NODE,
        code="tables_rejected",
        assertion=Assertion.OCCUR,
        evidence={"reason": REASON},
    ),
]


class DefectivePump:
    """Cannot preview what a change of the tables would do; keeps what is submitted."""

    def __init__(self) -> None:
        self.submitted: list[Input] = []
        self.has_come = asyncio.Event()

    def preview(self, _catalog: Catalog) -> Preview:
        raise ZeroDivisionError("defect")

    async def ask(self, *inputs: Input) -> Taken:
        self.submitted += inputs
        self.has_come.set()
        return Taken()


@pytest.fixture
async def catalogs(tmp_path: Path) -> AsyncIterator[Catalogs]:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.toml").write_text(ROW)
    ledger = Ledger(tmp_path / "state", "machine", limits=PATIENT)
    await ledger.open()
    catalogs = Catalogs(ledger, {})
    await catalogs.load([tmp_path / "tables"], Settings(), "")
    yield catalogs
    await ledger.close()


def reloading(folder: Path, catalogs: Catalogs, pump: DefectivePump) -> Reloading:
    path = folder / "nodeagent.toml"
    path.write_text(f'[agent]\ntables = ["{folder}/tables"]\n')
    return Reloading(load_config(path, {}), path, catalogs, cast(Pump, pump), EventFeed(), [], lambda _: None)


async def test_it_is_refused_with_the_reason_and_the_tables_in_force_stay(
    tmp_path: Path, catalogs: Catalogs
) -> None:
    in_force, pump = catalogs.current, DefectivePump()
    with pytest.raises(TablesRefused) as refused:
        await reloading(tmp_path, catalogs, pump).reload(dry_run=False)
    assert str(refused.value) == REASON
    assert pump.submitted == SUBMITTED
    assert catalogs.current is in_force


async def test_the_daemon_goes_on_and_hears_the_next_demand(tmp_path: Path, catalogs: Catalogs) -> None:
    pump, demand = DefectivePump(), asyncio.Event()
    listening = asyncio.create_task(reloading(tmp_path, catalogs, pump).on(demand))
    try:
        for _ in range(2):
            pump.has_come.clear()
            demand.set()
            async with asyncio.timeout(PATIENCE_S):
                await pump.has_come.wait()
        assert pump.submitted == SUBMITTED * 2
        assert not listening.done()
    finally:
        listening.cancel()
