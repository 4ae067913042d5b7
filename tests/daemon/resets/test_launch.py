"""Whether anybody listens where a reset is asked for, without asking."""

import socket
from pathlib import Path

import pytest

from nodeagent.config.reset import RUN_DIRECTORY
from nodeagent.daemon.resets import launch


@pytest.fixture
def as_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The daemon runs as a unit, whose resets are asked for at this path."""
    monkeypatch.setattr(launch, "_SYSTEMD_RUNS", tmp_path)
    monkeypatch.setattr(launch, "UNIT_SOCKET", str(tmp_path / "socket"))
    for name in ("INVOCATION_ID", "NOTIFY_SOCKET"):
        monkeypatch.setenv(name, "x")
    return tmp_path / "socket"


def why() -> str:
    return launch.why_it_cannot(Path(RUN_DIRECTORY))


def test_where_somebody_listens_nothing_hinders_a_reset(as_unit: Path) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(as_unit))
        door.listen()
        door.setblocking(False)
        assert why() == ""
        with pytest.raises(BlockingIOError):
            door.accept()


@pytest.mark.parametrize(
    "left", ["nothing", "a file of one that listens no more", "one that does not listen"]
)
def test_where_nobody_listens_that_is_said(as_unit: Path, left: str) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        if left != "nothing":
            door.bind(str(as_unit))
        if left != "one that does not listen":
            door.close()
        said = f"nothing can reset a device here: {as_unit}: no process listens"
        assert why() == f"{said}; is nodeagent-reset.socket active?"


@pytest.mark.parametrize("ends_a_line", ["\n", "\r", "\N{LINE SEPARATOR}"])
def test_what_a_user_calls_his_socket_stops_nothing(as_unit: Path, ends_a_line: str) -> None:
    """The kernel prints the name as it is."""
    listed = f"1 2 3 no-number 5 6 7 {as_unit}"
    with socket.socket(socket.AF_UNIX) as his:
        his.bind(f"\0x{ends_a_line}{listed}"[:107])
        assert "no process listens" in why()


def test_a_daemon_that_is_no_unit_starts_resets_itself(
    as_unit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert launch.why_it_cannot(as_unit.parent) == ""
    monkeypatch.delenv("INVOCATION_ID")
    assert why() == ""
