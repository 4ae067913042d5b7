"""The driver ``link``: the network ports of the node, Ethernet, RoCE and InfiniBand.

Changes of interfaces arrive by netlink; RDMA ports and their counters are read from sysfs at each poll. Ports
of hardware, bonds of such ports and configured interfaces are watched; interfaces of containers are not. The
driver judges nothing: the tables do.
"""

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodeagent.drivers.api import CallFailed, Driver, Emit, Population, Reading, Unavailable
from nodeagent.drivers.link import place
from nodeagent.drivers.link.faults import Found, LinkState, faults_of
from nodeagent.drivers.link.interface import Interface, Vanished
from nodeagent.drivers.link.place import NearbyChips
from nodeagent.drivers.link.ports import ports_of, rdma_ports, read_counters, read_state
from nodeagent.drivers.link.watched import Expected, ExpectedRdma, WatchedPort
from nodeagent.wire import MAX_DEVICES, MAX_SIGNALS, Active, Batch, Configure, Pattern, Signal

LOOK_EACH_NS: Final = 60_000_000_000
COUNT_EACH_NS: Final = 30_000_000_000
"""Each file of counters is a question to the card's firmware, and rules look at minutes."""

RECEIVE_BUFFER_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """``watch`` are patterns of names of further interfaces, ``expected_ports`` names of ports that should
    be up, ``chips`` the chips behind a port by its name.
    """

    sysfs: Path
    watch: Sequence[str] = ()
    expected_ports: Sequence[str] = ()
    expected: Expected
    chips: Mapping[str, Sequence[str]]

    @property
    def names_any(self) -> bool:
        return bool(self.watch or self.expected_ports or self.expected.rdma)


def create(configure: Configure, emit: Emit) -> Driver:
    return LinkDriver(settings_of(configure), emit)


def settings_of(configure: Configure) -> LinkSettings:
    """``config`` keys: those of ``LinkConfig``."""
    config: Mapping[str, Any] = configure.config
    return LinkSettings(
        sysfs=Path(config.get("sysfs", "/sys")),
        watch=tuple(config.get("watch", ())),
        expected_ports=tuple(config.get("expected_ports", ())),
        expected=Expected(
            rdma=int(config.get("expected_rdma", 0)),
            least_gbps=float(str(config.get("expected_rate", "")).removesuffix("G") or 0),
        ),
        chips=config.get("chips", {}),
    )


class LinkDriver:
    """One lock for all that is known of ports: it is held for no read of sysfs."""

    def __init__(
        self, settings: LinkSettings, emit: Emit, receive_buffer_bytes: int = RECEIVE_BUFFER_BYTES
    ) -> None:
        self._settings = settings
        self._emit = emit
        self._receive_buffer_bytes = receive_buffer_bytes
        self._chips = NearbyChips(settings.sysfs, settings.chips)
        self._expected = ExpectedRdma(settings.expected)
        self._follower: Any = None
        self._lock = threading.RLock()
        self._interfaces: dict[int, Interface] = {}
        self._ignored: set[int] = set()
        self._ports: dict[str, WatchedPort] = {}
        self._rdma_names: Sequence[str] = ()
        self._ports_are_stale = True
        self._looked_ns = 0
        self._listings = 0

    # ------------------------------------------------------------------ the driver

    def open(self) -> None:
        """Raises ``Unavailable``, absent if the node has no port and none is configured."""
        try:
            if not self._settings.names_any and not place.has_any(self._settings.sysfs):
                raise Unavailable("there is no network port of hardware", absent=True)
            # Its library is large: where there is nothing to watch it is not worth its memory.
            from nodeagent.drivers.link.netlink import LinkFollower

            self._follower = LinkFollower(self, self._receive_buffer_bytes)
            self._follower.begin()
        except OSError as error:
            raise Unavailable(
                f"network interfaces cannot be listed: {error.strerror or error}", errno=error.errno or 0
            ) from None

    def devices(self) -> Population:
        """Raises ``Unavailable`` once netlink cannot be read, ``CallFailed`` where sysfs cannot."""
        if self._follower.failed:
            raise Unavailable(self._follower.failed)
        self._listings += 1
        now_ns = _now_ns()
        if self._is_due(now_ns):
            self._look(now_ns)
        with self._lock:
            watched = list(self._ports.values())
            if self._listings > 1 and (signals := self._expected.judge(watched, now_ns)):
                self._send(signals)
        readings = {
            "overruns_total": float(self._follower.overruns),
            "changes_total": float(self._follower.changes),
            "lists_total": float(self._follower.lists),
        }
        devices = tuple(each.port.device() for each in watched[:MAX_DEVICES])
        return Population(devices=devices, readings=readings)

    def poll(self, device: str) -> Reading:
        """Raises ``CallFailed`` if sysfs does not show the state of an RDMA port."""
        watched = self._ports.get(device)
        if watched is None:
            raise CallFailed("this port is no longer on the node")
        now_ns = _now_ns()
        state, counters = None, watched.counters
        if watched.port.rdma is not None:
            state = read_state(watched.port.rdma)
            if watched.is_count_due(state, now_ns, COUNT_EACH_NS):
                counters = read_counters(watched.port.rdma)
                watched.counted_ns = now_ns
        with self._lock:
            watched.rdma_state, watched.counters = state, counters
            found, seen = self._judge(watched)
            if watched.is_listed:
                self._send(watched.report(found, seen, _now_ns()))
            else:
                watched.begin(found, seen)
            active = tuple(Active(code=code) for code in found.codes)
            return Reading(active=active, unread=found.unread, readings=watched.readings(found, seen))

    def reload(self, patterns: Sequence[Pattern]) -> None:
        """It has no patterns."""

    def close(self) -> None:
        if self._follower is not None:
            self._follower.end()

    # ------------------------------------------------------------------ what the follower reports

    def is_relevant(self, index: int) -> bool:
        """All but those that are known to be no ports; by its name a pattern may come to mean any."""
        return bool(self._settings.watch or self._settings.expected_ports) or index not in self._ignored

    def interfaces_listed(self, interfaces: Mapping[int, Interface]) -> None:
        with self._lock:
            before, self._interfaces = self._interfaces, dict(interfaces)
            self._ports_are_stale = True
            self._interfaces_changed(
                {index for index in {*before, *interfaces} if before.get(index) != interfaces.get(index)}
            )

    def changed(self, changes: Sequence[Interface | Vanished]) -> None:
        with self._lock:
            for change in changes:
                before = self._interfaces.get(change.index)
                if isinstance(change, Vanished):
                    self._ignored.discard(change.index)
                    self._ports_are_stale = (
                        self._interfaces.pop(change.index, None) is not None or self._ports_are_stale
                    )
                else:
                    self._interfaces[change.index] = change
                    is_known = before is not None and (before.name, before.bond) == (change.name, change.bond)
                    self._ports_are_stale = self._ports_are_stale or not is_known
                self._interfaces_changed({change.index})

    def report_due(self) -> float | None:
        now_ns = _now_ns()
        with self._lock:
            waiting = [watched for watched in self._ports.values() if watched.due_ns is not None]
            for watched in waiting:
                if watched.due_ns is not None and watched.due_ns <= now_ns:
                    found, seen = self._judge(watched)
                    self._send(watched.report(found, seen, now_ns))
            left = [watched.due_ns - now_ns for watched in waiting if watched.due_ns is not None]
            return max(0, min(left)) / 1e9 if left else None

    def _interfaces_changed(self, indexes: set[int]) -> None:
        """The interfaces of these have changed: what follows for their ports, and for bonds of them."""
        now_ns = _now_ns()
        for watched in self._ports.values():
            if indexes.isdisjoint({watched.port.index, *watched.port.members}):
                continue
            if watched.note(now_ns):
                found, seen = self._judge(watched)
                self._send(watched.report(found, seen, now_ns))

    # ------------------------------------------------------------------ which ports there are

    def _is_due(self, now_ns: int) -> bool:
        names = place.names(self._settings.sysfs / "class/infiniband")
        return self._ports_are_stale or names != self._rdma_names or now_ns - self._looked_ns >= LOOK_EACH_NS

    def _look(self, now_ns: int) -> None:
        """Find the ports again. Raises ``CallFailed``."""
        sysfs = self._settings.sysfs
        with self._lock:
            interfaces = list(self._interfaces.values())
            self._ports_are_stale = False
        try:
            names = place.names(sysfs / "class/infiniband")
            self._chips.look()
            ports = ports_of(
                interfaces,
                rdma_ports(sysfs),
                place_of=lambda name: place.place_of_interface(sysfs, name),
                chips_of=self._chips.of,
                watch=self._settings.watch,
                expected=self._settings.expected_ports,
            )
        except OSError as error:
            self._ports_are_stale = True
            raise CallFailed(f"sysfs cannot be read: {error}", errno=error.errno or 0) from None
        with self._lock:
            before, self._ports = self._ports, {}
            for name, port in ports.items():
                watched = self._ports[name] = before.get(name) or WatchedPort(port)
                watched.port = port
            here = {index for port in ports.values() for index in (port.index, *port.members)}
            self._ignored = {interface.index for interface in interfaces} - here
            for index in self._ignored:
                self._interfaces.pop(index, None)
        if len(ports) > MAX_DEVICES and not self._looked_ns:
            print(f"{len(ports)} ports, of which {MAX_DEVICES} are watched", file=sys.stderr, flush=True)
        self._rdma_names, self._looked_ns = names, now_ns

    def _judge(self, watched: WatchedPort) -> tuple[Found, LinkState]:
        seen = watched.look(self._interfaces)
        least_gbps = self._expected.least_gbps(self._ports.values())
        return faults_of(watched.port, seen, least_gbps), seen

    def _send(self, signals: Sequence[Signal]) -> None:
        """With the lock held, so that nothing overtakes what came before it."""
        for at in range(0, len(signals), MAX_SIGNALS):
            self._emit(Batch(signals=tuple(signals[at : at + MAX_SIGNALS])))


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
