"""Opening doors: leftovers are cleared away, what is somebody else's is not, and errors say what to do."""

import socket
from pathlib import Path

import pytest

from nodeagent.outlets.sockets import OutletError
from tests.outlets.stage import Stage


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
