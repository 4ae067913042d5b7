"""One port that is watched: what was read of it, and what of it was reported. Pure, but for who calls it.

A port that goes up and down a hundred times a second is reported at once, and from then on once a second:
as it is by then, and that it was down meanwhile. How often that was is counted by the kernel.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.core.model import Assertion
from nodeagent.drivers.link.faults import Evidence, Found, Seen, down_code, faults_of
from nodeagent.drivers.link.interface import Interface
from nodeagent.drivers.link.ports import Port
from nodeagent.drivers.link.rdma import RdmaState
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

    def look(self, interfaces: Mapping[int, Interface]) -> Seen:
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
        """It changed. Whether that is to be reported now; if not, ``due_ns`` says when."""
        if not self.is_listed:
            return False
        if now_ns < self._quiet_until_ns:
            self.due_ns = self._quiet_until_ns
            return False
        return True

    def begin(self, found: Found, seen: Seen) -> None:
        """Its first poll reports what stands: from now on changes are reported."""
        self.is_listed = True
        self._reported = dict(found.codes)
        self._losses = seen.losses

    def report(self, found: Found, seen: Seen, now_ns: int) -> list[Signal]:
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

    def readings(self, found: Found, seen: Seen) -> dict[str, float]:
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

    def _infiniband(self) -> Seen:
        state = self.rdma_state
        losses = self.counters.get("port_errors_total.link_downed")
        if state is None:
            return Seen(is_up=False, is_enabled=True, words="not read yet", was_up=self._was_up)
        return Seen(
            is_up=state.is_active,
            is_enabled=not state.is_disabled,
            words=state.words,
            was_up=self._was_up or state.is_active or bool(losses),
            losses=None if losses is None else int(losses),
            rate_gbps=state.rate_gbps,
        )

    def _interface(self, interfaces: Mapping[int, Interface]) -> Seen:
        here = interfaces.get(self.port.index)
        if here is None:
            # Deleted, or given to a container: the next list of ports says what that means.
            return Seen(is_up=False, is_enabled=True, words="gone")
        members = [interfaces[index] for index in self.port.members if index in interfaces]
        return Seen(
            is_up=here.is_up,
            is_enabled=here.is_enabled,
            words="no carrier" if here.is_enabled else "switched off by an administrator",
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


def _as_down(seen: Seen) -> Seen:
    return Seen(is_up=False, is_enabled=seen.is_enabled, words="was down, and is up again", was_up=True)
