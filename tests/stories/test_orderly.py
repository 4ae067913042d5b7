"""Stop and start as an operator does it, and what may stand in the way."""

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from tests.harness.configuration import ROOT
from tests.harness.daemon import COMMAND, Daemon
from tests.harness.kernel_log import FakeKernelLog
from tests.harness.metrics import is_scraped
from tests.harness.subscriber import as_stored, stored_events, without_gap
from tests.stories.conftest import Follow, Launch, Subscribe

STOP_LIMIT_S = 10
MANY = 400
"""More events than the buffers between a daemon and a subscriber hold."""


async def test_a_stop_and_a_start_repeat_nothing(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog
) -> None:
    daemon = launch(fake_log)
    subscriber = await follow(daemon)
    fake_log.say("a", "LASTING_1")
    await subscriber.raised("LASTING_1")

    await daemon.restart()
    await subscriber.follow()
    fake_log.say("a", "LASTING_2")
    await subscriber.raised("LASTING_2")

    assert [each.code for each in subscriber.of(EventKind.RAISED)] == ["LASTING_1", "LASTING_2"]
    assert without_gap(subscriber.events)
    assert as_stored(subscriber.events) == (await stored_events(daemon))[-len(subscriber.events) :]
    assert {each["code"] for each in (await daemon.status())["conditions"]} == {"LASTING_1", "LASTING_2"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_stops_in_time_though_a_subscriber_reads_nothing_and_nobody_reads_its_lines(
    launch: Launch, subscribe: Subscribe, fake_log: FakeKernelLog, number: signal.Signals
) -> None:
    reader, writer = os.pipe()
    fill(writer)
    daemon = launch(fake_log, stdout=writer)
    await daemon.start()
    os.close(writer)
    subscriber = subscribe(daemon)
    await subscriber.follow()
    hung = await following(daemon)
    hung.send_signal(signal.SIGSTOP)
    try:
        for line in range(MANY):
            fake_log.say(f"device{line % 4}", f"LASTING_{line}")
        await subscriber.raised(f"LASTING_{MANY - 1}")
        daemon.running.send_signal(number)
        async with asyncio.timeout(STOP_LIMIT_S):
            status = await daemon.ended()
    finally:
        hung.kill()
        await hung.communicate()
    os.close(reader)

    assert status == 0
    assert not daemon.socket.exists()


async def test_a_metrics_port_that_is_taken_costs_the_metrics_until_it_is_free_and_nothing_else(
    launch: Launch, subscribe: Subscribe, fake_log: FakeKernelLog
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        daemon = launch(fake_log, metrics=address)
        await daemon.start()
        subscriber = subscribe(daemon)
        await subscriber.follow()
        fake_log.say("a", "LASTING_1")
        await subscriber.raised("LASTING_1")

    await daemon.comes(lambda: is_scraped(address), "metrics at the port that is free now")
    assert f"no metrics: metrics.listen: cannot listen on {address}: Address already in use" in daemon.log


async def test_a_second_daemon_on_the_same_state_says_so_and_leaves_the_first_alone(
    launch: Launch, subscribe: Subscribe, fake_log: FakeKernelLog, tmp_path: Path
) -> None:
    first = launch(fake_log)
    await first.start()
    subscriber = subscribe(first)
    await subscriber.follow()
    before = sockets(first)

    twin = Daemon(folder=first.folder, kernel_log=first.kernel_log, kmsg=first.kmsg)
    await twin.spawn()
    status = await twin.ended()
    fake_log.say("a", "LASTING_1")
    await subscriber.raised("LASTING_1")

    assert status == 1
    assert f"{first.state} is in use by another nodeagent" in first.log
    assert "Traceback" not in first.log
    assert sockets(first) == before
    assert (await first.status())["conditions"][0]["code"] == "LASTING_1"


async def test_a_second_daemon_with_a_state_of_its_own_does_not_take_the_socket(
    launch: Launch, subscribe: Subscribe, fake_log: FakeKernelLog, tmp_path: Path
) -> None:
    first = launch(fake_log)
    await first.start()
    subscriber = subscribe(first)
    await subscriber.follow()
    before = sockets(first)

    second = launch(fake_log, tmp_path / "second")
    second.configure = lambda: None  # type: ignore[method-assign]
    second.config.write_text(second.config.read_text().replace(f"{second.folder}/n.sock", f"{first.socket}"))
    await second.spawn()
    status = await second.ended()
    fake_log.say("a", "LASTING_1")
    await subscriber.raised("LASTING_1")

    assert status == 78
    assert f"agent.socket: another process answers on {first.socket}" in second.log
    assert "Traceback" not in second.log
    assert sockets(first) == before


def sockets(daemon: Daemon) -> dict[str, int]:
    """The sockets in the daemon's folder and which files they are."""
    return {str(path): path.stat().st_ino for path in daemon.folder.rglob("*") if path.is_socket()}


async def following(daemon: Daemon) -> asyncio.subprocess.Process:
    """``nodeagent events --follow`` that has said its first line."""
    command = (*COMMAND, "events", "--follow", "--after", "0", "--socket", daemon.socket)
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    return process


def fill(pipe: int) -> None:
    """Until it takes no more."""
    os.set_blocking(pipe, False)
    try:
        while True:
            os.write(pipe, bytes(4096))
    except BlockingIOError:
        os.set_blocking(pipe, True)
