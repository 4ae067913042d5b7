"""The file of positions: what was noted is there after any end, and nobody else's file is touched."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from nodeagent.client import Position
from nodeagent.fleet.positions import Positions, PositionsError
from tests.fleet.given import position


def test_a_position_outlives_the_process(tmp_path: Path) -> None:
    kept = Positions.open(tmp_path / "positions")
    kept.note("gpu-17", position(6))
    kept.note("gpu-17", position(7))
    kept.close()
    again = Positions.open(tmp_path / "positions")
    assert (again.of("gpu-17"), again.of("gpu-18")) == (position(7), None)
    again.close()


@pytest.mark.parametrize("uuid", ["a:b", "::", "", "a\nb", "\0", "\N{ZERO WIDTH SPACE}", "1/2"], ids=ascii)
def test_whatever_a_node_calls_its_store_the_file_can_be_read_again(tmp_path: Path, uuid: str) -> None:
    """Else one node would keep the followers of all from starting."""
    kept = Positions.open(tmp_path / "positions")
    odd = Position(uuid=uuid, epoch=-1, seq=2**64 - 1)
    kept.note("odd", odd)
    kept.note("gpu-17", position(7))
    kept.close()
    again = Positions.open(tmp_path / "positions")
    assert (again.of("odd"), again.of("gpu-17")) == (odd, position(7))
    again.close()


def test_what_is_noted_while_it_is_written_is_written_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Positions.open(tmp_path / "positions")
    commit = kept._commit

    def noted_meanwhile(fresh: Mapping[str, Position]) -> str:
        kept.note("gpu-17", position(7))
        return commit(fresh)

    with monkeypatch.context() as patched:
        patched.setattr(kept, "_commit", noted_meanwhile)
        kept.note("gpu-17", position(6))
        kept.write()
    assert kept.of("gpu-17") == position(7)
    kept.close()
    again = Positions.open(tmp_path / "positions")
    assert again.of("gpu-17") == position(7)
    again.close()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "positions"
    kept = Positions.open(path)
    kept.note("gpu-17", position(6))
    with pytest.raises(PositionsError) as refused:
        Positions.open(path)
    assert str(refused.value) == f"{path}: another process follows with it; give each its own file"
    kept.close()


def test_a_file_that_is_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("my notes, which I need, and which are no database at all\n" * 40)
    with pytest.raises(PositionsError) as refused:
        Positions.open(path)
    assert str(refused.value) == (
        f"{path}: cannot be used for positions: file is not a database; name another file, or remove it"
    )
    assert path.read_text().startswith("my notes")


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE positions (mine)")
    other.close()
    with pytest.raises(PositionsError, match="it is a database of another program; name another file"):
        Positions.open(path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "positions"
    with pytest.raises(PositionsError) as refused:
        Positions.open(path)
    assert str(refused.value) == f"{path}: there is no folder {path.parent}; make it"


def test_a_disk_that_refuses_is_reported_once_and_nothing_is_forgotten(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Positions.open(tmp_path / "positions")
    kept._connection.execute("PRAGMA query_only = ON")
    kept.note("gpu-17", position(6))
    kept.write()
    kept.write()
    (record,) = caplog.records
    assert record.message == (
        f"{tmp_path / 'positions'}: positions cannot be written, events may come twice:"
        " attempt to write a readonly database"
    )
    kept._connection.execute("PRAGMA query_only = OFF")
    kept.close()
    again = Positions.open(tmp_path / "positions")
    assert again.of("gpu-17") == position(6)
    again.close()
