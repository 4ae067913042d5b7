"""Looks at a vendor's devices as the daemon does, by a worker of its own: which there are, who is on them.

The worker ends before anything is reset: a GPU that anybody has open cannot be. It changes nothing.
"""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Final, cast

from nodeagent import wire
from nodeagent.config.drivers import VendorConfig
from nodeagent.drivers.shared.resetting import ResetRefused
from nodeagent.system.line_splitter import LineSplitter
from nodeagent.wire import Device, Holder, ProtocolError

LOOK_LIMIT_S: Final = 60.0
"""So long a library may take to open and to list its devices: without persistence a GPU takes seconds."""

END_LIMIT_S: Final = 10.0
"""So long the worker may take to end; one that hangs in the kernel is left, and has its devices open."""

HOLDERS_LIMIT_S: Final = 3.0
"""So long the devices may take to say who is on them: one that hangs says nothing."""

_POLL_ID: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The devices by name; for those that were asked who is on them, None where that is not known.

    ``missing``: those that ought to be there and are not listed, by their PCI addresses.
    """

    devices: Mapping[str, Device]
    missing: frozenset[str] = frozenset()
    holders: Mapping[str, tuple[Holder, ...] | None] = field(default_factory=dict)


def look(vendor: str, section: VendorConfig, boot_id: str, holders_of: Collection[str] = ()) -> Seen:
    """With the configured library. Raises ``ResetRefused`` where it cannot look."""
    configure = wire.Configure(driver=vendor, boot_id=boot_id, config=section.for_driver())
    command = (sys.executable, "-I", "-m", "nodeagent.worker", vendor)
    try:
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    except OSError as error:
        raise ResetRefused(f"the {vendor} worker cannot be started: {error.strerror}") from error
    try:
        return _Conversation(worker).look(configure, holders_of)
    except (OSError, ProtocolError) as error:
        raise ResetRefused(f"the {vendor} devices cannot be read: {error}") from error
    finally:
        _end(worker)


class _Conversation:
    def __init__(self, worker: "subprocess.Popen[bytes]") -> None:
        self._orders = cast(IO[bytes], worker.stdin)
        self._said = cast(IO[bytes], worker.stdout)
        self._splitter = LineSplitter(wire.MAX_LINE_BYTES)

    def look(self, configure: wire.Configure, holders_of: Collection[str]) -> Seen:
        self._send(configure)
        opened = (wire.Hello, wire.Unavailable)
        hello = next((each for each in self._reports(LOOK_LIMIT_S) if isinstance(each, opened)), None)
        if hello is None:
            raise ResetRefused(f"the {configure.driver} devices were not listed within {LOOK_LIMIT_S:g} s")
        if isinstance(hello, wire.Unavailable):
            raise ResetRefused(f"the {configure.driver} devices cannot be read: {hello.reason}")
        devices = {device.device: device for device in hello.devices}
        holders = self._holders([name for name in holders_of if name in devices])
        return Seen(
            devices=devices,
            missing=frozenset(each.device for each in hello.missing),
            holders={**dict.fromkeys(holders_of), **holders},
        )

    def _holders(self, devices: Sequence[str]) -> Mapping[str, tuple[Holder, ...] | None]:
        """The holders of the devices that answer."""
        found: dict[str, tuple[Holder, ...] | None] = {}
        if devices:
            self._send(wire.Poll(id=_POLL_ID, devices=tuple(devices)))
            for report in self._reports(HOLDERS_LIMIT_S):
                if isinstance(report, wire.Reply):
                    found[report.device] = report.holders
                if found.keys() >= set(devices):
                    break
        return found

    def _send(self, order: wire.Request) -> None:
        self._orders.write(wire.encode(order))

    def _reports(self, limit_s: float) -> Iterator[wire.Report]:
        """Until it ends, or its time does. Raises ``ProtocolError``."""
        poll, until_s = select.poll(), time.monotonic() + limit_s
        poll.register(self._said, select.POLLIN)
        while (left_s := until_s - time.monotonic()) > 0 and poll.poll(left_s * 1000):
            chunk = os.read(self._said.fileno(), 65536)
            if not chunk:
                return
            yield from map(wire.decode_report, self._splitter.feed(chunk))


def _end(worker: "subprocess.Popen[bytes]") -> None:
    """Its closed input asks it to end."""
    with contextlib.suppress(OSError):
        cast(IO[bytes], worker.stdin).close()
    try:
        worker.wait(END_LIMIT_S)
    except subprocess.TimeoutExpired:
        worker.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(END_LIMIT_S)
    cast(IO[bytes], worker.stdout).close()
