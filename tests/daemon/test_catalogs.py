"""Which tables are in force: what is on disk if it is sound, else the last good, also over a restart."""

from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Catalog, Pattern
from nodeagent.core.catalog.settings import Settings
from nodeagent.core.model import CatalogChanged, Level, TablesRejected
from nodeagent.daemon import catalogs as catalogs_module
from nodeagent.daemon.catalogs import KEPT, Catalogs, NoTables, stand_in
from nodeagent.store.ledger import Ledger
from nodeagent.tables.canonical import encode_catalog, with_digest
from tests.store.samples import PATIENT, make_the_catalogs_texts

SHIPPED = """
kind = "host"
vendor = "linux"

[codes.HUNG_TASK]
name = "Task blocked"
level = "SubHealthFault"
clear_on = ["10m"]
description = "A task waits in the kernel for very long."
action = "Look at what it waits for."
"""
STRICTER = SHIPPED.replace("SubHealthFault", "PreSeparateFault")
BROKEN = SHIPPED.replace("SubHealthFault", "VeryBadFault")


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    folder = tmp_path / "shipped"
    folder.mkdir()
    (folder / "kernel.toml").write_text(SHIPPED)
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


async def begin(state: Path) -> tuple[Ledger, Catalogs, dict[str, Catalog]]:
    ledger = Ledger(state, "machine", limits=PATIENT)
    await ledger.open()
    known: dict[str, Catalog] = {}
    return ledger, Catalogs(ledger, known), known


def level(catalogs: Catalogs) -> Level:
    return level_of(catalogs.current)


def level_of(catalog: Catalog) -> Level:
    row = catalog.row("HUNG_TASK")
    assert row is not None
    return row.level


async def test_sound_tables_come_into_force(tmp_path: Path, shipped: Path, site: Path) -> None:
    ledger, catalogs, known = await begin(tmp_path / "state")
    inputs = await catalogs.load([shipped, site], Settings(), "")
    assert inputs == (CatalogChanged(digest=catalogs.current.digest),)
    assert catalogs.current.digest in known
    await ledger.close()


async def test_unchanged_tables_are_no_input(tmp_path: Path, shipped: Path, site: Path) -> None:
    ledger, catalogs, _ = await begin(tmp_path / "state")
    await catalogs.load([shipped, site], Settings(), "")
    assert await catalogs.load([shipped, site], Settings(), catalogs.current.digest) == ()
    await ledger.close()


async def test_however_often_tables_change_only_the_newest_stay_in_memory(
    tmp_path: Path, shipped: Path, site: Path
) -> None:
    ledger, catalogs, known = await begin(tmp_path / "state")
    in_force = ""
    for number in range(3 * KEPT):
        (site / "kernel.toml").write_text(SHIPPED.replace("10m", f"{number + 1}m"))
        await catalogs.load([shipped, site], Settings(), in_force)
        assert in_force == "" or in_force in known
        in_force = catalogs.current.digest
        assert in_force in known
    assert len(known) == KEPT
    await ledger.close()


async def test_a_bad_table_keeps_what_is_in_force_and_says_why(
    tmp_path: Path, shipped: Path, site: Path
) -> None:
    ledger, catalogs, _ = await begin(tmp_path / "state")
    await catalogs.load([shipped, site], Settings(), "")
    in_force = catalogs.current.digest
    (site / "kernel.toml").write_text(BROKEN)
    (rejected,) = await catalogs.load([shipped, site], Settings(), in_force)
    assert isinstance(rejected, TablesRejected)
    assert f"{site}/kernel.toml:7" in rejected.reason
    assert "VeryBadFault" in rejected.reason
    assert catalogs.current.digest == in_force
    await ledger.close()


async def test_a_bad_table_keeps_the_last_good_one_over_a_restart(
    tmp_path: Path, shipped: Path, site: Path
) -> None:
    ledger, catalogs, _ = await begin(tmp_path / "state")
    (site / "kernel.toml").write_text(STRICTER)
    await catalogs.load([shipped, site], Settings(), "")
    await ledger.close()
    (site / "kernel.toml").write_text(BROKEN)
    ledger, catalogs, _ = await begin(tmp_path / "state")
    changed, rejected = await catalogs.load([shipped, site], Settings(), "")
    assert changed == CatalogChanged(digest=catalogs.current.digest)
    assert isinstance(rejected, TablesRejected)
    assert level(catalogs) is Level.PRE_SEPARATE_FAULT
    await ledger.close()


async def test_whatever_fails_in_loading_the_last_good_tables_stay_and_it_is_said(
    tmp_path: Path,
    shipped: Path,
    site: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ledger, catalogs, _ = await begin(tmp_path / "state")
    (site / "kernel.toml").write_text(STRICTER)
    await catalogs.load([shipped, site], Settings(), "")
    await ledger.close()

    def fail(*_: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(catalogs_module, "load_cached", fail)
    ledger, catalogs, _ = await begin(tmp_path / "state")
    _, rejected = await catalogs.load([shipped, site], Settings(), "")
    assert rejected == TablesRejected(
        reason="cannot be loaded, by a defect of nodeagent; report it with the files: KeyError('a defect')"
    )
    assert level(catalogs) is Level.PRE_SEPARATE_FAULT
    assert "Traceback" in caplog.text
    await ledger.close()


async def test_on_a_first_start_a_bad_site_table_leaves_the_shipped_ones(
    tmp_path: Path, shipped: Path, site: Path
) -> None:
    (site / "kernel.toml").write_text(BROKEN)
    ledger, catalogs, _ = await begin(tmp_path / "state")
    await catalogs.load([shipped, site], Settings(), "")
    assert level(catalogs) is Level.SUB_HEALTH
    await ledger.close()


async def test_last_good_tables_that_are_damaged_give_way_to_the_shipped_ones(
    tmp_path: Path, shipped: Path, site: Path
) -> None:
    ledger, catalogs, _ = await begin(tmp_path / "state")
    (site / "kernel.toml").write_text(STRICTER)
    await catalogs.load([shipped, site], Settings(), "")
    await ledger.close()
    make_the_catalogs_texts(tmp_path / "state")
    (site / "kernel.toml").write_text(BROKEN)
    ledger, catalogs, _ = await begin(tmp_path / "state")
    await catalogs.load([shipped, site], Settings(), "")
    assert level(catalogs) is Level.SUB_HEALTH
    await ledger.close()


@pytest.mark.parametrize("is_in_force", [False, True])
async def test_last_good_tables_with_a_pattern_of_an_earlier_version_give_way_to_the_shipped_ones(
    tmp_path: Path, shipped: Path, site: Path, caplog: pytest.LogCaptureFixture, is_in_force: bool
) -> None:
    """No worker could read the kernel log with them: RE2 has no look-ahead, which earlier versions took."""
    ledger, catalogs, known = await begin(tmp_path / "state")
    (site / "kernel.toml").write_text(STRICTER)
    await catalogs.load([shipped, site], Settings(), "")
    earlier = Pattern(id="P", code="BOOT", regex="^acme: (?!no)", device="node")
    before = with_digest(replace(catalogs.current, patterns=(earlier,)))
    known[before.digest] = before
    await ledger.put_catalog(before.digest, encode_catalog(before), "of an earlier version")

    (site / "kernel.toml").write_text(BROKEN)
    changed, rejected = await catalogs.load([shipped, site], Settings(), before.digest if is_in_force else "")

    assert changed == CatalogChanged(digest=catalogs.current.digest)
    assert isinstance(rejected, TablesRejected)
    assert level(catalogs) is Level.SUB_HEALTH
    assert "the last good tables are of an earlier version, pattern of BOOT: not a regular exp" in caplog.text
    await ledger.close()


async def test_in_the_place_of_a_lost_catalog_stand_the_tables_on_disk_else_the_last_good_else_the_shipped(
    tmp_path: Path, shipped: Path, site: Path
) -> None:
    folders = [shipped, site]
    (site / "kernel.toml").write_text(BROKEN)
    ledger, catalogs, _ = await begin(tmp_path / "state")
    assert level_of(await stand_in(ledger, folders, Settings())) is Level.SUB_HEALTH
    (site / "kernel.toml").write_text(STRICTER)
    assert level_of(await stand_in(ledger, folders, Settings())) is Level.PRE_SEPARATE_FAULT
    await catalogs.load(folders, Settings(), "")
    (site / "kernel.toml").write_text(BROKEN)
    assert level_of(await stand_in(ledger, folders, Settings())) is Level.PRE_SEPARATE_FAULT
    await ledger.close()


async def test_without_any_sound_table_there_is_nothing_to_judge_by(tmp_path: Path, shipped: Path) -> None:
    (shipped / "kernel.toml").write_text(BROKEN)
    ledger, catalogs, _ = await begin(tmp_path / "state")
    with pytest.raises(NoTables, match="VeryBadFault"):
        await catalogs.load([shipped], Settings(), "")
    await ledger.close()
