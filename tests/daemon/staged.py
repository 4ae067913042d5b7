"""A supervisor on a stage: everything it delivers is kept, and a test waits for what it expects."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from nodeagent.core.model import (
    ActiveSet,
    DeviceGone,
    Input,
    Signal,
    SourceBack,
    SourceLost,
)
from nodeagent.daemon.pump import Delivery
from nodeagent.daemon.sources.supervisor import SourceSupervisor
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.metrics.daemon import SourceHealth
from tests.attributes import all_broken

ROOT = Path(__file__).parents[2]
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
PATIENCE_S = 60.0

HANG_S = 1.5
"""How long a call may take where a test waits for one that hangs; on a loaded machine others are quicker."""

Wanted = TypeVar("Wanted")


def command(*arguments: str) -> tuple[str, ...]:
    """This interpreter with these arguments, able to import ``tests`` wherever pytest was started."""
    return ("env", f"PYTHONPATH={ROOT}", sys.executable, *arguments)


def worker_spec(module: str, **given: Any) -> WorkerSpec:
    """A worker of the driver module, with pauses a test can wait for; no call is late on a loaded machine."""
    defaults: dict[str, Any] = {
        "source": "fake",
        "boot_id": BOOT,
        "command": command("-m", "nodeagent.worker", "fake", "--module", module),
        "poll_interval_s": 0.05,
        "call_deadline_s": 30.0,
        "hello_deadline_s": 30.0,
        "terminate_grace_s": 0.3,
        "backoff_first_s": 0.05,
        "backoff_limit_s": 0.2,
    }
    return WorkerSpec(**{**defaults, **given})


@dataclass
class Staged:
    """``inputs`` is all that was delivered, in order."""

    supervisor: SourceSupervisor
    inputs: list[Input] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def deliver(self, delivery: Delivery) -> None:
        await self.gate.wait()
        async with self.arrived:
            self.deliveries.append(delivery)
            self.inputs.extend(delivery.inputs)
            self.arrived.notify_all()

    @property
    def health(self) -> SourceHealth:
        return self.supervisor.health()

    async def until(self, found: Callable[[], Wanted | None], what: str = "") -> Wanted:
        """What ``found`` gives once it gives something; looked at with every delivery and now and then."""
        try:
            async with asyncio.timeout(PATIENCE_S), self.arrived:
                while not (result := found()):
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(0.02):
                            await self.arrived.wait()
                return result
        except TimeoutError:
            raise AssertionError(f"never came: {what}; {self.health}; {self.inputs}") from None

    async def signal(self, code: str, device: str, assertion: str, after: int = 0) -> Signal:
        """The first such signal from the ``after``-th input on."""
        return await self.until(
            lambda: next(
                (
                    given
                    for given in self.inputs[after:]
                    if isinstance(given, Signal)
                    and (given.code, given.device, given.assertion) == (code, device, assertion)
                ),
                None,
            ),
            f"{code} {device} {assertion}",
        )

    async def back(self, device: str = "", after: int = 0) -> SourceBack:
        return await self.until(
            lambda: next(
                (g for g in self.inputs[after:] if isinstance(g, SourceBack) and g.device == device), None
            ),
            f"SourceBack {device}",
        )

    async def lost(self, device: str = "", after: int = 0, reason: str = "") -> SourceLost:
        """The first such loss from the ``after``-th input on, for whatever reason if none is named."""
        return await self.until(
            lambda: next(
                (
                    given
                    for given in self.inputs[after:]
                    if isinstance(given, SourceLost)
                    and given.device == device
                    and reason in ("", given.reason)
                ),
                None,
            ),
            f"SourceLost {device} {reason}",
        )

    async def polled(self, device: str, times: int = 1) -> None:
        """That many further answers of the device."""
        seen = len(self.inputs)
        await self.until(
            lambda: sum(isinstance(g, ActiveSet) and g.device == device for g in self.inputs[seen:]) >= times,
            f"{times} answers of {device}",
        )

    def faults(self, code: str) -> list[tuple[str, str]]:
        """(device, assertion) of every signal of the code or a refined form of it, but recoveries of what
        never was."""
        emitted: list[tuple[str, str]] = []
        for given in self.inputs:
            if isinstance(given, Signal) and code in (given.code, given.code.rpartition(".")[0]):
                if given.assertion == "recover" and (given.device, "occur") not in emitted:
                    continue
                emitted.append((given.device, given.assertion.value))
        return emitted


@contextlib.asynccontextmanager
async def staged(spec: WorkerSpec) -> AsyncIterator[Staged]:
    """Run it; at the end it is stopped, what it left behind is killed; its words on devices are judged."""
    stage: Staged

    async def deliver(delivery: Delivery) -> None:
        await stage.deliver(delivery)

    stage = Staged(SourceSupervisor(spec, deliver, lambda stamp_ns: stamp_ns))
    stage.gate.set()
    task = asyncio.create_task(stage.supervisor.run())
    try:
        yield stage
    finally:
        stage.gate.set()
        await stage.supervisor.stop()
        await task
    assert all_broken(stage.inputs) == []


def put(path: Path, text: str = "") -> None:
    """Write a file that a running driver reads: it is there whole, or not at all."""
    fresh = path.with_name(f".{path.name}")
    fresh.write_text(text)
    fresh.rename(path)


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def release_fifo(path: Path) -> None:
    """Let whoever waits in opening it for reading go on; nobody may be waiting."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


def threads_of(pid: int | None) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


FAKE = "tests.daemon.fake_driver"


def fake(control: Path, devices: str = "chip0 chip1 chip2", **given: object) -> WorkerSpec:
    return worker_spec(FAKE, config={"control": str(control), "devices": devices}, **given)


def lost(stage: Staged) -> list[Input]:
    return [given for given in stage.inputs if isinstance(given, SourceLost | DeviceGone)]


def in_use(stage: Staged) -> int:
    assert stage.health.pid is not None
    return stage.health.pid
