"""Workers that a unit of its own hosts: asked for over its socket, and ended by hanging up."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent import wire
from nodeagent.daemon.workers.child import Child, WorkerEvent, WorkerEvents, WorkerExited, WorkerReported
from nodeagent.daemon.workers.process import start_hosted
from nodeagent.emulator.node import EmulatedNode
from tests.daemon.staged import staged, worker_spec
from tests.waiting import WAIT_LIMIT_S, wait_until

pytestmark = pytest.mark.root

AS_UNIT = "from nodeagent.worker import hosted; hosted.USER = 'root'; hosted.main()"
"""As the unit does it, but for the user, who may not read this checkout."""


class Unit:
    """What systemd does of nodeagent-ascend.socket: a process for each connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.processes: list[subprocess.Popen[bytes]] = []
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listening.bind(str(path))
        self._listening.listen()
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                self.processes.append(
                    subprocess.Popen([sys.executable, "-c", AS_UNIT], stdin=connection.fileno())
                )

    def ended(self) -> list[int]:
        """How each of them ended."""
        return [process.wait(timeout=WAIT_LIMIT_S) for process in self.processes]

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def unit(tmp_path: Path) -> Iterator[Unit]:
    made = Unit(tmp_path / "socket")
    yield made
    made.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[EmulatedNode]:
    with EmulatedNode.create(tmp_path / "node", "8x910B") as made:
        yield made


def descriptors() -> set[tuple[str, str]]:
    """Each open one with what it is: what earlier tests left may be closed meanwhile, so see what is new."""
    gc.collect()
    found: set[tuple[str, str]] = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add((descriptor.name, str(descriptor.readlink())))
    return found


def configure(node: EmulatedNode) -> wire.Configure:
    config: dict[str, wire.Setting] = {"library": str(node.dcmi), "sysfs": str(node.sysfs)}
    return wire.Configure(driver="ascend", boot_id="b", config=config)


async def begun(unit: Unit, heard: WorkerEvents) -> Child:
    return await Child.of(await start_hosted(unit.path, "ascend"), heard, logging.getLogger())


async def next_of(heard: WorkerEvents) -> WorkerEvent:
    async with asyncio.timeout(WAIT_LIMIT_S):
        happening = await heard.get()
    assert happening is not None
    return happening


async def test_it_is_the_process_of_the_unit_and_reads_the_npus(unit: Unit, node: EmulatedNode) -> None:
    heard: WorkerEvents = asyncio.Queue()
    child = await begun(unit, heard)
    child.send(configure(node))
    said = await next_of(heard)
    assert isinstance(said, WorkerReported)
    assert isinstance(said.report, wire.Hello)
    assert (child.pid, len(said.report.devices)) == (unit.processes[0].pid, 8)
    child.hang_up()
    exited = await next_of(heard)
    assert isinstance(exited, WorkerExited)
    assert exited.how == f"journalctl --unit 'nodeagent-ascend@*' _PID={child.pid} shows how"
    assert unit.ended() == [0]
    await child.release()


@pytest.mark.parametrize("by", ["asked-to", "released", "daemon-gone"])
async def test_one_that_does_nothing_any_more_is_killed_by_hanging_up(
    unit: Unit, node: EmulatedNode, by: str
) -> None:
    heard: WorkerEvents = asyncio.Queue()
    if by == "daemon-gone":
        script = (
            "import asyncio, os, sys; from pathlib import Path; from nodeagent.daemon.workers import process;"
            "asyncio.run(process.start_hosted(Path(sys.argv[1]), 'ascend')); os.kill(os.getpid(), 9)"
        )
        daemon = [sys.executable, "-c", script, str(unit.path)]
        await asyncio.to_thread(subprocess.run, daemon, check=False, timeout=WAIT_LIMIT_S)
    else:
        child = await begun(unit, heard)
        os.kill(child.pid, signal.SIGSTOP)
        if by == "asked-to":
            child.signal(signal.SIGKILL)
            assert await child.wait(WAIT_LIMIT_S)
        await child.release()
    assert unit.ended() == [-signal.SIGKILL]


async def test_to_be_asked_to_end_is_the_end_of_its_orders(unit: Unit, node: EmulatedNode) -> None:
    heard: WorkerEvents = asyncio.Queue()
    child = await begun(unit, heard)
    child.signal(signal.SIGTERM)
    assert await child.wait(WAIT_LIMIT_S)
    assert unit.ended() == [0]
    await child.release()


async def test_without_a_unit_it_is_said_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No such file or directory; is nodeagent-ascend\.socket active\?"):
        await start_hosted(tmp_path / "socket", "ascend")


@pytest.mark.parametrize("name", ["nvidia", "../ascend", ""])
async def test_a_worker_that_needs_no_unit_is_refused_and_nothing_stays_open(unit: Unit, name: str) -> None:
    before = descriptors()
    with pytest.raises(OSError, match="the unit ended before it was a worker"):
        await start_hosted(unit.path, name or "no driver")
    assert unit.ended() == [65]
    assert descriptors() - before == set()


async def test_one_that_hangs_is_ended_and_replaced_as_any_other(unit: Unit, node: EmulatedNode) -> None:
    config = configure(node).config
    spec = worker_spec("", source="ascend", host=unit.path, config=config, call_deadline_s=1.5)
    async with staged(spec) as stage:
        await stage.until(lambda: stage.supervisor.health().readings.keys() >= {"npu7"})
        node.hang(lock=True)
        await stage.lost()
        first = unit.processes[0].pid
        node.release()
        await stage.until(lambda: len(unit.processes) >= 2)
        assert unit.processes[0].wait(timeout=WAIT_LIMIT_S) in (0, -signal.SIGKILL)
        assert unit.processes[1].pid != first
    wait_until(lambda: all(process.poll() is not None for process in unit.processes))
