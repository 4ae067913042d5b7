"""The devices before a reset: which exist, which processes use them, and how a job's processes are ended.

The devices are listed by a worker, as in the daemon. The worker ends before the reset: a GPU that any process
has open cannot be reset.

Only processes are ended that the request names with their start time, that use one of the devices now by the
vendor's list, and that belong to a job. A process of no job, such as a service of the node, is never ended,
nor is a process of the job in which this process runs. Each gets SIGTERM, a grace period and SIGKILL, by a
pidfd. Their children are left to the launcher of the job; a child that uses a device is named itself.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, cast

from nodeagent import wire
from nodeagent.drivers.shared.resetting import ResetRefused
from nodeagent.drivers.shared.users import user_of
from nodeagent.reset_unit.exchange.requests import JobProcess
from nodeagent.system.streams import LineSplitter
from nodeagent.vendors import VendorConfig
from nodeagent.wire import Device, DeviceUser, ProtocolError

LOOK_LIMIT_S: Final = 60.0
"""So long a library may take to open and to list its devices: without persistence a GPU takes seconds."""

END_LIMIT_S: Final = 10.0
"""So long the worker may take to end; one that hangs in the kernel is left, and has its devices open."""

HOLDERS_LIMIT_S: Final = 3.0
"""How long the devices may take to list their processes; one that hangs never does."""

_POLL_ID: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedDevices:
    """The devices by name; for those that were asked for their users, None where these are not known.

    ``missing``: those that should be there and are not listed, by their PCI addresses.
    """

    devices: Mapping[str, Device]
    missing: frozenset[str] = frozenset()
    users: Mapping[str, tuple[DeviceUser, ...] | None] = field(default_factory=dict)


def list_devices(
    vendor: str, section: VendorConfig, boot_id: str, users_of: Collection[str] = ()
) -> ListedDevices:
    """With the configured library. Raises ``ResetRefused`` where it cannot look."""
    configure = wire.Configure(driver=vendor, boot_id=boot_id, config=section.for_driver())
    command = (sys.executable, "-I", "-m", "nodeagent.worker", vendor)
    try:
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    except OSError as error:
        raise ResetRefused(f"the {vendor} worker cannot be started: {error.strerror}") from error
    try:
        return _WorkerConversation(worker).look(configure, users_of)
    except (OSError, ProtocolError) as error:
        raise ResetRefused(f"the {vendor} devices cannot be read: {error}") from error
    finally:
        _end_worker(worker)


class _WorkerConversation:
    def __init__(self, worker: "subprocess.Popen[bytes]") -> None:
        self._orders = cast(IO[bytes], worker.stdin)
        self._said = cast(IO[bytes], worker.stdout)
        self._splitter = LineSplitter(wire.MAX_LINE_BYTES)

    def look(self, configure: wire.Configure, users_of: Collection[str]) -> ListedDevices:
        self._send(configure)
        opened = (wire.Hello, wire.Unavailable)
        hello = next((each for each in self._reports(LOOK_LIMIT_S) if isinstance(each, opened)), None)
        if hello is None:
            raise ResetRefused(f"the {configure.driver} devices were not listed within {LOOK_LIMIT_S:g} s")
        if isinstance(hello, wire.Unavailable):
            raise ResetRefused(f"the {configure.driver} devices cannot be read: {hello.reason}")
        devices = {device.device: device for device in hello.devices}
        users = self._users([name for name in users_of if name in devices])
        return ListedDevices(
            devices=devices,
            missing=frozenset(each.device for each in hello.missing),
            users={**dict.fromkeys(users_of), **users},
        )

    def _users(self, devices: Sequence[str]) -> Mapping[str, tuple[DeviceUser, ...] | None]:
        """The users of the devices that answer."""
        found: dict[str, tuple[DeviceUser, ...] | None] = {}
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


def _end_worker(worker: "subprocess.Popen[bytes]") -> None:
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


KILL_WAIT_S: Final = 5.0
"""A process that is killed is gone at once, unless it hangs in the kernel."""


def processes_to_end(
    named: Collection[JobProcess], users: Mapping[str, tuple[DeviceUser, ...] | None], procfs: Path
) -> tuple[DeviceUser, ...]:
    """The users of the devices that are among the named processes, each once; a named one that uses none is
    none of them.

    Raises ``ResetRefused`` if one of them may not be ended, or the users of a device are not known.
    """
    meant = {(process.pid, process.start_time) for process in named}
    own = user_of(procfs, os.getpid())
    found: dict[int, DeviceUser] = {}
    for device, listed in users.items():
        if listed is None:
            raise ResetRefused(f"the users of {device} are not known")
        for user in listed:
            if (user.pid, user.start_time) not in meant:
                continue
            if not user.job or (own is not None and user.job == own.job):
                raise ResetRefused(
                    f"{user.command} (pid {user.pid}) on {device} is of no job that may be ended"
                )
            found[user.pid] = user
    return tuple(found.values())


def end_processes(
    processes: Iterable[DeviceUser], grace_s: float, procfs: Path, step: Callable[[str], None]
) -> tuple[DeviceUser, ...]:
    """Those that are there still; empty where all have gone. ``step`` hears of each signal."""
    with ExitStack() as handles:
        living = {}
        for process in processes:
            descriptor = _handle_of(process, procfs)
            if descriptor is not None:
                handles.callback(os.close, descriptor)
                living[descriptor] = process
        for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, KILL_WAIT_S)):
            if living:
                named = ", ".join(f"{process.command} ({process.pid})" for process in living.values())
                step(f"{number.name} to {named}")
            for descriptor in living:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)
            for descriptor in _gone_within(wait_s, living):
                del living[descriptor]
        return tuple(living.values())


def _handle_of(process: DeviceUser, procfs: Path) -> int | None:
    """None where it has gone, and its pid is perhaps another's."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    found = user_of(procfs, process.pid)
    if found is not None and found.start_time == process.start_time:
        return descriptor
    os.close(descriptor)
    return None


def _gone_within(wait_s: float, descriptors: Iterable[int]) -> list[int]:
    """A handle is readable once its process has ended."""
    poll, left = select.poll(), set(descriptors)
    for descriptor in left:
        poll.register(descriptor, select.POLLIN)
    gone: list[int] = []
    until_s = time.monotonic() + wait_s
    while left and (remaining_s := until_s - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(remaining_s * 1000):
            poll.unregister(descriptor)
            left.remove(descriptor)
            gone.append(descriptor)
    return gone
