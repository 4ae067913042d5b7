"""What was loaded is kept for the next start; whatever becomes of the files, the answers are the same."""

import dataclasses
import logging
import os
from pathlib import Path

import pytest

from nodeagent.core.catalog.settings import Mode, Settings
from nodeagent.core.model import Level
from nodeagent.tables import cached
from nodeagent.tables.cached import load_cached
from nodeagent.tables.load import Loaded, TablesError, load_catalog

ROW = """
kind = "chip"
vendor = "ascend"
[codes.80E18005]
name = "a fault"
level = "{level}"
clear_on = ["recover"]
level_source = "nodeagent"
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("CACHE_DIRECTORY", str(folder))
    return folder


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    write(folder, "RestartNPU")
    return folder


def write(folder: Path, level: str) -> None:
    (folder / "one.toml").write_text(ROW.format(level=level))


def level(loaded: Loaded) -> Level:
    (row,) = loaded.catalog.rows.values()
    return row.level


def load_nothing(*_: object) -> Loaded:
    raise AssertionError("the tables were read again")


def test_the_next_start_reads_what_was_kept(
    cache: Path, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = (tables, tables / "absent")
    first = load_cached(folders, Settings())
    monkeypatch.setattr(cached, "load_catalog", load_nothing)

    again = load_cached(folders, Settings())

    assert again == first == load_catalog(folders, Settings())
    assert len(again.warnings) == 1


def test_the_shipped_tables_come_back_as_they_were(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = (Path(__file__).parents[2] / "fault_codes",)
    first = load_cached(folders, Settings())
    monkeypatch.setattr(cached, "load_catalog", load_nothing)

    assert load_cached(folders, Settings()) == first


def test_a_changed_file_is_read(cache: Path, tables: Path) -> None:
    load_cached((tables,), Settings())
    unchanged = (tables / "one.toml").stat()
    write(tables, "SeparateNPU")
    os.utime(tables / "one.toml", ns=(unchanged.st_atime_ns, unchanged.st_mtime_ns))

    assert level(load_cached((tables,), Settings())) is Level.SEPARATE_NPU


def test_other_settings_are_in_the_catalog(cache: Path, tables: Path) -> None:
    load_cached((tables,), Settings())
    graceful = dataclasses.replace(Settings(), mode=Mode.GRACEFUL)

    assert load_cached((tables,), graceful).catalog.settings.mode is Mode.GRACEFUL


def test_the_same_tables_in_another_folder_name_their_own_files(cache: Path, tables: Path) -> None:
    load_cached((tables,), Settings())
    other = tables.rename(tables.parent / "moved")

    (row,) = load_cached((other,), Settings()).catalog.rows.values()

    assert row.file.startswith(f"{other}/one.toml:")


def test_tables_that_are_refused_are_refused_again(cache: Path, tables: Path) -> None:
    write(tables, "Restart")
    for _ in range(2):
        with pytest.raises(TablesError, match=r"one\.toml"):
            load_cached((tables,), Settings())

    assert list(cache.iterdir()) == []


def test_what_is_no_file_is_refused_without_being_read(cache: Path, tables: Path) -> None:
    os.mkfifo(tables / "pipe.toml")

    with pytest.raises(TablesError, match=r"pipe\.toml"):
        load_cached((tables,), Settings())


def test_files_that_change_while_they_are_read_are_not_kept(
    cache: Path, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change_then_load(folders: tuple[Path, ...], settings: Settings) -> Loaded:
        write(tables, "SeparateNPU")
        return load_catalog(folders, settings)

    monkeypatch.setattr(cached, "load_catalog", change_then_load)
    load_cached((tables,), Settings())

    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no catalog", None], ids=["empty", "foreign", "changed"])
def test_a_damaged_file_is_reported_and_written_again(
    cache: Path, tables: Path, caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    first = load_cached((tables,), Settings())
    (file,) = cache.iterdir()
    sound = file.read_bytes()
    file.write_bytes(sound.replace(b"RestartNPU", b"NotHandleF") if content is None else content)

    with caplog.at_level(logging.WARNING):
        assert load_cached((tables,), Settings()) == first

    assert f"{file} cannot be used, the tables that were loaded are made again" in caplog.text
    assert file.read_bytes() == sound


def test_without_a_service_manager_nothing_is_kept(
    cache: Path, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CACHE_DIRECTORY")

    load_cached((tables,), Settings())

    assert list(cache.iterdir()) == []
