"""How many RDMA ports of the node work, and whether that is as many as the configuration expects. Pure.

It is a fault of the node: which port is missing nobody can know where one is not there at all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nodeagent.core.model import NODE, Assertion
from nodeagent.drivers.link.watched import WatchedPort
from nodeagent.wire import Signal

FEWER: Final = "fewer_rdma_ports_than_expected"
MAX_NAMED: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """``rdma`` ports ought to be up, 0 for any number, each at ``least_gbps`` or more, 0 for any rate."""

    rdma: int
    least_gbps: float


class ExpectedRdma:
    """Over the life of a worker."""

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self._is_short: bool | None = None

    def least_gbps(self, ports: Iterable[WatchedPort]) -> float:
        """What each port ought to have. Where there are more than expected, some are for something else."""
        rdma = sum(watched.port.rdma is not None for watched in ports)
        is_each_meant = self._expected.rdma in (0, rdma) or rdma < self._expected.rdma
        return self._expected.least_gbps if is_each_meant else 0.0

    def judge(self, ports: Iterable[WatchedPort], now_ns: int) -> list[Signal]:
        """What is to be reported once each was read. At first also that all is well: an earlier worker may
        have said otherwise.
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
