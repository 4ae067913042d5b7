"""What a driver is: the code for one source, hosted by one worker process.

A driver module offers one function,

    def create(settings: Configure, emit: Emit) -> Driver: ...

and the object it returns follows ``Driver``. ``create`` only looks at its settings (ValueError: they
make no sense); everything that may fail or hang because of the machine belongs into ``open``.

Threads, which the worker makes and the driver may rely on:

- ``open``, the first ``devices`` and ``follow`` run in the *source thread*, in this order;
- ``poll(device)`` and every later ``devices`` run in a *poller*, maybe another one each time: one after the
  other, at the same time as another only where that takes longer than it should (see ``worker.pollers``),
  and never twice at a time for one device;
- ``reload`` runs in a thread of its own; ``close`` runs at the end, whatever else still hangs.

A call into a vendor's library is made in the thread that will answer for it; if it never returns,
the daemon sees that this device's reply is late. There is no other mechanism. A library's own
callback does nothing but ``emit.enqueue``, which never waits; what overflows there is counted, and
the next complete ``Reading`` makes up for it.

A driver never imports another driver, nor the core beyond ``core.model``; it starts no command,
writes no file, holds no table of levels, and retries only what its docstring lists.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from nodeagent.wire import (
    Active,
    Baseline,
    Batch,
    Configure,
    Device,
    DeviceUser,
    Following,
    Missing,
    Pattern,
    Poll,
)


class Emit(Protocol):
    """How a driver sends what is no reading."""

    def __call__(self, report: Following) -> None:
        """Send it; waits while the daemon is behind. For the source thread."""

    def enqueue(self, report: Batch) -> None:
        """Hand it over without waiting; dropped and counted when too many wait. For a library's callback."""


class Unavailable(Exception):
    """The source cannot be opened. ``absent``: there is nothing here to open, which may be quite in order.
    ``missing``: the devices that PCI or the configuration promises, each of which is lost by this.
    ``code``: the fault of the node that this is; the driver reports its end once it is open again.
    """

    def __init__(
        self,
        reason: str,
        *,
        errno: int = 0,
        absent: bool = False,
        missing: Sequence[Missing] = (),
        code: str = "",
    ) -> None:
        super().__init__(reason)
        self.errno = errno
        self.absent = absent
        self.missing = missing
        self.code = code


class CallFailed(Exception):
    """A library call came back with a failure; ``errno`` is its code where it has one."""

    def __init__(self, reason: str, *, errno: int = 0) -> None:
        super().__init__(reason)
        self.errno = errno


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """The devices, and those that should be there and are not.

    ``readings``: telemetry of the source itself, such as what it refused; no change of the population.
    """

    devices: Sequence[Device] = ()
    missing: Sequence[Missing] = ()
    readings: Mapping[str, float] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one poll of one device found.

    ``active``: the codes active now, None if the source has no such list; ``complete`` is false when
    the list may lack codes (a buffer was filled, nothing more can be asked); ``unread``: the codes, without
    what refines them, that it may lack because the call for them failed. ``readings``: telemetry by metric
    name in base units; not ``measured``: none was taken, what was reported last holds. ``users``: the
    processes on the device, None if unknown, () if it is free. ``baseline``: what workers to come have to
    know of the part with ``identity`` (see ``wire.Configure``); sent when it changes, and now and then.
    """

    active: Sequence[Active] | None = None
    complete: bool = True
    unread: Sequence[str] = ()
    readings: Mapping[str, float] = field(default_factory=dict)
    measured: bool = True
    users: Sequence[DeviceUser] | None = None
    identity: str = ""
    baseline: Baseline | None = None


class Link(Protocol):
    """What a following driver waits on in addition to its source."""

    def fileno(self) -> int:
        """Readable when the daemon asks something, or when it is time to end."""

    def asked(self) -> Sequence[Poll]:
        """What the daemon asks of the source since the last call; clears ``fileno``."""

    def answer(self, poll: Poll, reading: Reading, *, begun_ns: int) -> None:
        """Answer it, from the thread that reads the source."""

    @property
    def closed(self) -> bool:
        """The worker ends: return from ``follow``."""


class Driver(Protocol):
    """One source with zero or more devices."""

    def open(self) -> None:
        """Load the library, open the descriptor. Raises ``Unavailable``."""

    def devices(self) -> Population:
        """Enumerate; called after ``open`` and at every poll of the source. Raises ``CallFailed``, and
        ``Unavailable`` if the library must be opened again: the process ends, another one opens it.
        """

    def poll(self, device: str) -> Reading:
        """Ask one device. Raises ``CallFailed``."""

    def reload(self, patterns: Sequence[Pattern]) -> None:
        """Take new patterns, where the driver has any. Raises ``ValueError``: the old ones stay."""

    def close(self) -> None:
        """Let go. Called once, possibly while another thread hangs in a call."""


@runtime_checkable
class Follower(Driver, Protocol):
    """A driver that also follows a stream: it sends ``CaughtUp`` once it has read what was there before."""

    def follow(self, link: Link) -> None:
        """Read until ``link.closed``. Runs in the source thread and answers the source's polls itself."""


Create = Callable[[Configure, Emit], Driver]
