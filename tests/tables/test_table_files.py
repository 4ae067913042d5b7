"""Files and folders that cannot be tables, and what is said of them."""

import os
from pathlib import Path

import pytest

from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import TablesError, load_catalog
from nodeagent.toml.source import TOO_DEEP, TOO_LARGE

ROW = 'kind = "chip"\n[codes.A1]\nname = "a"\nlevel = "RestartNPU"\n'


def refusal(*folders: Path) -> str:
    with pytest.raises(TablesError) as refused:
        load_catalog(folders, Settings())
    return str(refused.value)


def test_a_first_folder_that_does_not_exist(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    assert refusal(folder) == f"{folder}: cannot be read as a folder of tables: No such file or directory"


def test_a_site_folder_that_does_not_exist_is_only_warned_of(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(ROW)
    assert load_catalog([tmp_path, tmp_path / "site"], Settings()).warnings == (
        f"{tmp_path}/site: no such folder; taken as empty",
    )


def test_a_folder_without_tables(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: holds no table with a code"


def test_a_table_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "t.toml").mkdir()
    assert refusal(tmp_path) == f"{tmp_path}/t.toml: cannot be read: Is a directory"


def test_a_table_that_is_a_pipe_does_not_hang_the_loader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.toml")
    assert refusal(tmp_path) == f"{tmp_path}/t.toml: not a file"


def test_a_table_that_is_a_broken_link(tmp_path: Path) -> None:
    (tmp_path / "t.toml").symlink_to(tmp_path / "gone")
    assert refusal(tmp_path) == f"{tmp_path}/t.toml: cannot be read: No such file or directory"


def test_a_table_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_bytes(b'kind = "chip"\nvendor = "\xff"\n')
    assert refusal(tmp_path) == f"{tmp_path}/t.toml:2: not UTF-8: byte 0xff"


def test_a_table_that_is_not_toml(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(ROW + "level RestartNPU\n")
    said = "not valid TOML: Expected '=' after a key in a key/value pair"
    assert refusal(tmp_path) == f"{tmp_path}/t.toml:5: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 100_000, f"1: not valid TOML: {TOO_DEEP}"),
        ("a = " + "[\n" * 100_000, f" not valid TOML: {TOO_DEEP}"),
        ("vendor = " + "[" * 200 + "]" * 200, f"1: vendor{'[0]' * 31}: {TOO_DEEP}"),
        ("a" + ".a" * 400 + " = 1", f"1: a{'.a' * 31}: {TOO_DEEP}"),
        (f"{ROW}times = {'9' * 5000}", f"5: not valid TOML: {TOO_LARGE}"),
        (f"{ROW}times = -{'9' * 5000}", f"5: not valid TOML: {TOO_LARGE}"),
        (f"{ROW}times = {'1_' * 5000}1", f"5: not valid TOML: {TOO_LARGE}"),
        (f"{ROW}times = 0x{'f' * 5000}", f"5: codes.A1.times: {TOO_LARGE}"),
        (f"{ROW}times = [1, {{ x = {2**63} }}]", f"5: codes.A1.times[1].x: {TOO_LARGE}"),
    ],
    ids=lambda text: text[:40],
)
def test_a_table_with_what_cannot_be_shown_or_stored(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "t.toml").write_text(text)
    assert refusal(tmp_path) == f"{tmp_path}/t.toml:{said}"


def test_the_mark_that_other_systems_put_before_utf8_is_no_part_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_bytes(b"\xef\xbb\xbf" + ROW.encode())
    assert load_catalog([tmp_path], Settings()).catalog.rows["A1"].file == f"{tmp_path}/t.toml:2"


def test_a_table_in_utf16(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(ROW, "utf-16")
    assert refusal(tmp_path) == f"{tmp_path}/t.toml:1: in UTF-16; save it as UTF-8"


@pytest.mark.parametrize("name", [b"\xff.toml", b"two\nlines.toml"])
def test_a_table_whose_name_cannot_be_told(tmp_path: Path, name: bytes) -> None:
    path = os.fsdecode(bytes(tmp_path) + b"/" + name)
    Path(path).write_text(ROW)
    assert refusal(tmp_path) == f"{path!a}: its name holds what cannot be shown or is not UTF-8; rename it"


def test_other_files_beside_the_tables_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(ROW)
    (tmp_path / ".t.toml.swp").write_text("?")
    (tmp_path / ".#t.toml").symlink_to("gone")
    (tmp_path / "README.md").write_text("?")
    assert list(load_catalog([tmp_path], Settings()).catalog.rows) == ["A1"]
