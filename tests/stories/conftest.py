"""Daemons and kernel logs for the stories; whatever is left of them at the end is ended."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from nodeagent.emulator.node import EmulatedNode
from tests.harness.daemon import Daemon
from tests.harness.kernel_log import FakeKernelLog, KernelLogDouble, RealKernelLog
from tests.harness.subscriber import Subscriber
from tests.stories.gpus import GpuDaemon

Launch = Callable[..., Daemon]
LaunchGpus = Callable[..., GpuDaemon]
Subscribe = Callable[[Daemon], Subscriber]
Follow = Callable[[Daemon], Awaitable[Subscriber]]


@pytest.fixture
def real_log(kmsg_lock: None) -> Iterator[RealKernelLog]:
    log = RealKernelLog()
    yield log
    log.close()


@pytest.fixture
def fake_log(tmp_path: Path) -> Iterator[FakeKernelLog]:
    log = FakeKernelLog(tmp_path)
    yield log
    log.close()


@pytest.fixture
async def launch(tmp_path: Path) -> AsyncIterator[Launch]:
    """A daemon, not yet started, that understands the lines of a log by the table ``site/story.toml``."""
    made: list[Daemon] = []

    def make(
        log: RealKernelLog | FakeKernelLog,
        folder: Path = tmp_path,
        kmsg_keys: Sequence[str] = (),
        **fields: Any,
    ) -> Daemon:
        folder.mkdir(exist_ok=True)
        kmsg = (f"trust_userspace = {log.trust}", *kmsg_keys)
        daemon = Daemon(folder=folder, kernel_log=log.path, kmsg=kmsg, **fields)
        daemon.configure()
        (daemon.tables / "story.toml").write_text(log.table)
        made.append(daemon)
        return daemon

    yield make
    for daemon in made:
        if daemon.process is not None:
            await daemon.kill()


@pytest.fixture
async def subscribe() -> AsyncIterator[Subscribe]:
    made: list[Subscriber] = []

    def make(daemon: Daemon) -> Subscriber:
        made.append(Subscriber(daemon))
        return made[-1]

    yield make
    for subscriber in made:
        await subscriber.leave()


@pytest.fixture
def follow(subscribe: Subscribe) -> Follow:
    """Start a daemon and follow it from its first word on."""

    async def start(daemon: Daemon) -> Subscriber:
        await daemon.start()
        subscriber = subscribe(daemon)
        await subscriber.follow()
        return subscriber

    return start


@pytest.fixture
async def launch_gpus(tmp_path: Path) -> AsyncIterator[LaunchGpus]:
    """A daemon, not yet started, beside the emulated node described; it ends with the test."""
    made: list[GpuDaemon] = []

    def make(description: str, **fields: Any) -> GpuDaemon:
        node = EmulatedNode.create(tmp_path / "node", description)
        kernel = KernelLogDouble(tmp_path)
        daemon = GpuDaemon(folder=tmp_path, kernel_log=kernel.path, node=node, kernel=kernel, **fields)
        made.append(daemon)
        return daemon

    yield make
    for daemon in made:
        daemon.node.release()
        if daemon.process is not None:
            await daemon.kill()
        daemon.kernel.close()
