"""Opening doors: leftovers are cleared away, what is somebody else's is not, and errors say what to do."""

import os
import socket
from pathlib import Path

import pytest

from nodeagent.api.access import sockets
from nodeagent.api.access.sockets import OutletError
from tests.api.peer import NOBODY
from tests.api.stage import Stage


async def failure(stage: Stage) -> str:
    with pytest.raises(OutletError) as failed:
        await stage.open()
    await stage.ledger.close()
    return str(failed.value)


async def test_a_socket_that_a_killed_daemon_left_is_replaced(place: Path) -> None:
    stage = Stage(place)
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(stage.socket))
    left.close()
    await stage.open()
    async with stage.client() as client:
        assert [device.name for device in await client.devices()] == ["node"]
    await stage.close()


async def test_a_second_daemon_does_not_take_the_socket_of_the_first(stage: Stage, place: Path) -> None:
    (place / "state").rename(place / "state-of-the-first")
    words = await failure(Stage(place))
    assert words == f"agent.socket: another process answers on {stage.socket}; stop it or choose another path"
    async with stage.client() as client:
        assert [device.name for device in await client.devices()] == ["node"]


async def test_a_file_in_the_place_of_the_socket_is_left_alone(place: Path) -> None:
    stage = Stage(place)
    stage.control_socket.write_text("precious")
    assert await failure(stage) == (
        f"agent.control_socket: {stage.control_socket} exists and is no socket;"
        " remove it or choose another path"
    )
    assert stage.control_socket.read_text() == "precious"
    assert not stage.socket.exists()


async def test_a_path_too_long_for_a_socket_is_told_with_the_limit(place: Path) -> None:
    deep = place / ("x" * 100)
    words = await failure(Stage(deep))
    assert (
        words == f"agent.socket: {deep}/nodeagent.sock is longer than the 107 bytes a socket's path may have"
    )


@pytest.fixture
def planted(place: Path, request: pytest.FixtureRequest) -> Path:
    """Another user's symlink in a folder where anybody may make one; it leads to an empty folder of root."""
    place.chmod(0o777)
    (place / "precious").mkdir(mode=0o755)
    planted = place / str(request.param)
    planted.symlink_to(place / "precious")
    os.lchown(planted, NOBODY, NOBODY)
    return planted


@pytest.mark.root
@pytest.mark.parametrize(
    "planted", [".nodeagent.sock.private", ".control.sock.private"], indirect=True, ids=["public", "control"]
)
async def test_what_another_user_puts_in_the_place_of_the_private_folder_is_not_followed(
    place: Path, planted: Path
) -> None:
    words = await failure(Stage(place))
    precious = place / "precious"
    assert words.endswith(f": {planted} is no directory; remove it, or choose another place")
    assert (precious.stat().st_mode & 0o777, list(precious.iterdir())) == (0o755, [])


@pytest.mark.root
@pytest.mark.parametrize("target", ["a file of root", "a socket of root", "a socket of another user"])
def test_what_another_user_puts_in_the_place_of_a_socket_keeps_its_mode_and_group(
    place: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the making of the socket and its opening to the group."""
    monkeypatch.setattr(sockets, "group_id", lambda _: NOBODY)
    path, precious = place / "control.sock", place / "precious"
    if target == "a file of root":
        precious.write_text("precious")
        precious.chmod(0o600)
    else:
        sockets.bound(precious, "agent.control_socket").close()
    if target == "a socket of another user":
        os.chown(precious, NOBODY, -1)
        precious.rename(path)
        precious = path
    else:
        path.symlink_to(precious)
    with pytest.raises(OutletError) as refused:
        sockets.open_to(path, "nodeagent-admin", "agent.control_socket")
    found = precious.stat()
    assert "was replaced by somebody else" in str(refused.value)
    assert (found.st_mode & 0o777, found.st_gid) == (0o600, 0)


@pytest.mark.root
def test_a_socket_is_its_owners_until_it_is_opened_to_its_group(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "group_id", lambda _: NOBODY)
    path = place / "control.sock"
    with sockets.bound(path, "agent.control_socket"):
        before = path.stat()
        sockets.open_to(path, "nodeagent-admin", "agent.control_socket")
        after = path.stat()
    assert (before.st_mode & 0o777, before.st_gid) == (0o600, 0)
    assert (after.st_mode & 0o777, after.st_gid) == (0o660, NOBODY)
