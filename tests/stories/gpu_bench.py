"""The real daemon beside a node of emulated GPUs: NVML is the double, the kernel log a FIFO.

The tables are those shipped, and no reset is proposed unless a story asks for it. What is done to the GPUs is
done through ``node``; what the kernel says, through ``say``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodeagent.client import Event, EventKind
from nodeagent.emulator.gpus import Gpus, xid_line
from nodeagent.emulator.node import EmulatedNode
from tests.computed_once import with_shipped_tables
from tests.drivers.kernel_log_double import KernelLogDouble
from tests.sources import only_named
from tests.stories.daemon import ROOT, Daemon
from tests.stories.subscriber import Subscriber


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
    said: int = 0

    @property
    def gpus(self) -> Gpus:
        return self.node.gpus

    def configure(self) -> None:
        self.tables.mkdir(exist_ok=True)
        tables = [ROOT / "fault_codes", *([self.tables] if self._has_own_tables() else [])]
        lines = [
            "[agent]",
            f'state_dir = "{self.state}"',
            f'socket = "{self.socket}"',
            f'control_socket = "{self.folder}/c.sock"',
            f"tables = {json.dumps(list(map(str, tables)))}",
            *(() if self.as_shipped else ('stale_after = "0s"',)),
            "[metrics]",
            'listen = ""',
            "[reset]",
            *(() if self.as_shipped else self.reset),
            "[drivers.kmsg]",
            f'path = "{self.kernel_log}"',
            *self.kmsg,
            "[drivers.nvidia]",
            "required = true",
            f'library = "{self.node.nvml}"',
            f'sysfs = "{self.node.sysfs}"',
            f'procfs = "{self.procfs}"',
            *(() if self.as_shipped else ('poll_interval = "200ms"', 'call_deadline = "2s"')),
            *self.nvidia,
        ]
        self.config.write_text(only_named("\n".join((*lines, *self.sections, ""))))

    def environment(self) -> Mapping[str, str]:
        return super().environment() if self._has_own_tables() else with_shipped_tables()

    def _has_own_tables(self) -> bool:
        return any(self.tables.iterdir())

    def say(self, *lines: str) -> None:
        """Lines of the kernel itself."""
        for line in lines:
            self.said += 1
            self.kernel.write(self.said, line)

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
