"""The real daemon beside a node of emulated GPUs: NVML is the double, the kernel log a FIFO.

The tables are those shipped, and no reset is proposed unless a story asks for it. What is done to the GPUs is
done through ``node``; what the kernel says, through ``say``.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodeagent.client import Event, EventKind
from nodeagent.emulator.gpus import Gpus, xid_line
from nodeagent.emulator.node import EmulatedNode
from tests.harness.configuration import SHIPPED_TABLES
from tests.harness.daemon import Daemon
from tests.harness.kernel_log import KernelLogDouble
from tests.harness.procfs import process
from tests.harness.subscriber import Subscriber


@dataclass(kw_only=True)
class GpuDaemon(Daemon):
    """``procfs`` is the root of what the kernel shows of processes; the machine's own if it is not given.
    ``reset`` are the lines of the section of resets, ``nvidia`` further ones of the driver's. ``as_shipped``:
    of the configuration only paths are set.
    """

    node: EmulatedNode
    kernel: KernelLogDouble
    procfs: Path = field(default_factory=lambda: Path("/proc"))
    reset: Sequence[str] = ('mode = "off"',)
    nvidia: Sequence[str] = ()
    as_shipped: bool = False

    @property
    def gpus(self) -> Gpus:
        return self.node.gpus

    def configure(self) -> None:
        self.tables.mkdir(exist_ok=True)
        self.files.write_configuration(
            self.kernel_log,
            self.tables_read(),
            agent=() if self.as_shipped else ('stale_after = "0s"',),
            kmsg=self.kmsg,
            sections=(
                "[reset]",
                *(() if self.as_shipped else self.reset),
                "[drivers.nvidia]",
                "required = true",
                f'library = "{self.node.nvml}"',
                f'sysfs = "{self.node.sysfs}"',
                f'procfs = "{self.procfs}"',
                *(() if self.as_shipped else ('poll_interval = "200ms"', 'call_deadline = "2s"')),
                *self.nvidia,
                *self.sections,
            ),
        )

    def tables_read(self) -> Sequence[Path]:
        return SHIPPED_TABLES, *([self.tables] if any(self.tables.iterdir()) else [])

    def say(self, *lines: str) -> None:
        """Lines of the kernel itself."""
        for line in lines:
            self.kernel.append(line)

    def xid(self, device: str, xid: int, detail: str = "") -> None:
        """The kernel's line of an Xid on that GPU."""
        self.say(xid_line(self.gpus.pci(device), xid, detail))

    async def explained(self, codes: Sequence[str]) -> list[dict[str, Any]]:
        """What ``nodeagent explain`` says of each code, in their order."""
        _, out = await self.command("explain", *codes, "--socket", self.socket)
        return [json.loads(line) for line in out.splitlines()]


def events_of(subscriber: Subscriber, device: str, code: str) -> list[EventKind]:
    """The kinds of the events about this code on that device."""
    return [event.kind for event in subscriber.events if (event.device, event.code) == (device, code)]


def raised_on(subscriber: Subscriber, device: str) -> list[str]:
    """The codes that were raised on that device, in order."""
    return [event.code for event in subscriber.of(EventKind.RAISED) if event.device == device]


def last_of(subscriber: Subscriber, device: str) -> Event:
    """What was emitted last for the device."""
    return [event for event in subscriber.events if event.device == device][-1]


MANAGER_DOWN = "NV_FABRIC_MANAGER_DOWN"


def name_process(procfs: Path, pid: int, name: str) -> None:
    process(procfs, pid, command=name)
    (procfs / str(pid) / "comm").write_text(f"{name}\n")
