"""Watched ports: what was read of each, what was reported, and whether enough RDMA ports work. Pure.

A port that goes up and down a hundred times a second is reported at once, and after that once a second, with
its state then and that it was down in between. The kernel counts how often it lost its link.

Too few working RDMA ports are a fault of the node: a port that does not exist cannot be named.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nodeagent.core.model import NODE, Assertion
from nodeagent.drivers.link.faults import Evidence, Found, LinkState, down_code, faults_of
from nodeagent.drivers.link.interface import Interface
from nodeagent.drivers.link.ports import Port, RdmaState
from nodeagent.wire import Signal

QUIET_NS: Final = 1_000_000_000


class WatchedPort:
    """``is_listed``: the daemon knows it, since it has asked for it."""

    def __init__(self, port: Port) -> None:
        self.port = port
        self.is_listed = False
        self.due_ns: int | None = None
        self.rdma_state: RdmaState | None = None
        self.counters: Mapping[str, float] = {}
        self.counted_ns: int | None = None
        self._was_up = False
        self._reported: dict[str, Evidence] = {}
        self._losses: int | None = None
        self._quiet_until_ns = 0

    def look(self, interfaces: Mapping[int, Interface]) -> LinkState:
        """How it is, by what was read of it last."""
        seen = self._infiniband() if self.port.is_infiniband else self._interface(interfaces)
        self._was_up = seen.was_up
        return seen

    def is_count_due(self, state: RdmaState, now_ns: int, each_ns: int) -> bool:
        """Whether to read its counters: now and then, and when its link changed, so that they go together."""
        before = self.rdma_state
        if self.counted_ns is None or before is None or before.is_active is not state.is_active:
            return True
        return now_ns - self.counted_ns >= each_ns

    def note(self, now_ns: int) -> bool:
        """It changed. Whether that is to be reported now; if not, ``due_ns`` is when."""
        if not self.is_listed:
            return False
        if now_ns < self._quiet_until_ns:
            self.due_ns = self._quiet_until_ns
            return False
        return True

    def begin(self, found: Found, seen: LinkState) -> None:
        """The first poll reports the active faults; from now on changes are reported."""
        self.is_listed = True
        self._reported = dict(found.codes)
        self._losses = seen.losses

    def report(self, found: Found, seen: LinkState, now_ns: int) -> list[Signal]:
        """What changed since the last report, what is over first."""
        lost = max(0, (seen.losses or 0) - (self._losses or 0)) if self._losses is not None else 0
        down = down_code(self.port)
        signals = [
            self._signal(code, Assertion.RECOVER, now_ns)
            for code in self._reported
            if code not in found.codes and code not in found.unread
        ]
        if lost and seen.is_up:
            # It is up again, and was down in between.
            also = faults_of(self.port, _as_down(seen), 0.0).codes
            if down in also and down not in self._reported:
                signals.append(self._signal(down, Assertion.OCCUR, now_ns, also[down], lost))
                signals.append(self._signal(down, Assertion.RECOVER, now_ns))
        for code, evidence in found.codes.items():
            if code not in self._reported:
                count = max(1, lost) if code == down else 1
                signals.append(self._signal(code, Assertion.OCCUR, now_ns, evidence, count))
        unread = {code: self._reported[code] for code in self._reported if code in found.unread}
        self._reported = {**unread, **found.codes}
        self._losses = seen.losses
        self.due_ns = None
        if signals:
            self._quiet_until_ns = now_ns + QUIET_NS
        return signals

    def readings(self, found: Found, seen: LinkState) -> dict[str, float]:
        """Telemetry; rules watch what is wrong with needed ports apart from others."""
        part = "needed" if self.port.is_needed else "other"
        down = down_code(self.port)
        readings = {"link_up": float(seen.is_up), **self.counters}
        if down not in found.unread:
            readings[f"link_down.{part}"] = float(down in found.codes)
        if seen.losses is not None:
            readings[f"link_losses_total.{part}"] = seen.losses
        if seen.rate_gbps is not None:
            readings["link_rate_bits_per_second"] = seen.rate_gbps * 1e9
        return readings

    def _infiniband(self) -> LinkState:
        state = self.rdma_state
        losses = self.counters.get("port_errors_total.link_downed")
        if state is None:
            return LinkState(is_up=False, is_enabled=True, text="not read yet", was_up=self._was_up)
        return LinkState(
            is_up=state.is_active,
            is_enabled=not state.is_disabled,
            text=state.text,
            was_up=self._was_up or state.is_active or bool(losses),
            losses=None if losses is None else int(losses),
            rate_gbps=state.rate_gbps,
        )

    def _interface(self, interfaces: Mapping[int, Interface]) -> LinkState:
        here = interfaces.get(self.port.index)
        if here is None:
            # Deleted, or given to a container: the next list of ports shows which.
            return LinkState(is_up=False, is_enabled=True, text="gone")
        members = [interfaces[index] for index in self.port.members if index in interfaces]
        return LinkState(
            is_up=here.is_up,
            is_enabled=here.is_enabled,
            text="no carrier" if here.is_enabled else "switched off by an administrator",
            was_up=self._was_up or here.is_up or here.gains > 0,
            losses=here.losses,
            rate_gbps=self.rdma_state.rate_gbps if self.rdma_state is not None else None,
            idle_members=tuple(member.name for member in members if not member.is_up),
        )

    def _signal(
        self, code: str, assertion: Assertion, now_ns: int, evidence: Evidence | None = None, count: int = 1
    ) -> Signal:
        return Signal(
            device=self.port.name,
            code=code,
            assertion=assertion,
            count=count,
            first_ns=now_ns,
            last_ns=now_ns,
            evidence=dict(evidence or {}),
        )


def _as_down(seen: LinkState) -> LinkState:
    return LinkState(is_up=False, is_enabled=seen.is_enabled, text="was down, and is up again", was_up=True)


FEWER: Final = "fewer_rdma_ports_than_expected"
MAX_NAMED: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """``rdma`` ports should be up, 0 for any number, each at ``least_gbps`` or more, 0 for any rate."""

    rdma: int
    least_gbps: float


class ExpectedRdma:
    """Over the life of a worker."""

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self._is_short: bool | None = None

    def least_gbps(self, ports: Iterable[WatchedPort]) -> float:
        """The rate that each port should have. With more ports than expected, some have another use."""
        rdma = sum(watched.port.rdma is not None for watched in ports)
        is_each_meant = self._expected.rdma in (0, rdma) or rdma < self._expected.rdma
        return self._expected.least_gbps if is_each_meant else 0.0

    def judge(self, ports: Iterable[WatchedPort], now_ns: int) -> list[Signal]:
        """What is to be reported once each was read. At first also that all is well: an earlier worker may
        have reported a fault.
        """
        rdma = [watched for watched in ports if watched.port.rdma is not None]
        if any(watched.rdma_state is None for watched in rdma):
            return []
        idle = [watched.port.name for watched in rdma if not self._is_working(watched)]
        working = len(rdma) - len(idle)
        is_short = working < self._expected.rdma
        if is_short is self._is_short:
            return []
        self._is_short = is_short
        return [self._signal(working, idle, now_ns)]

    def _is_working(self, watched: WatchedPort) -> bool:
        state = watched.rdma_state
        return state is not None and state.is_active and state.rate_gbps >= self._expected.least_gbps

    def _signal(self, working: int, idle: Sequence[str], now_ns: int) -> Signal:
        at_rate = f" at {self._expected.least_gbps:g} Gb/s or more" if self._expected.least_gbps else ""
        reason = f"{working} up{at_rate}, drivers.link.expected_rdma is {self._expected.rdma}"
        if idle:
            reason += f"; down or slow: {', '.join(idle[:MAX_NAMED])}"
        return Signal(
            device=NODE,
            code=FEWER,
            assertion=Assertion.OCCUR if self._is_short else Assertion.RECOVER,
            first_ns=now_ns,
            last_ns=now_ns,
            evidence={"reason": reason} if self._is_short else {},
        )
