"""From what a worker reports to inputs of the core. Pure.

Stamps come in on CLOCK_BOOTTIME and leave on the rule clock; one from the future is brought back to
now, for no source can have seen what has not happened yet. The source's name is ours, not the worker's.
The agent's own faults are made here too, so that their words stand in one place.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from nodeagent import wire
from nodeagent.core.model import (
    AGENT,
    ALL_DEVICES,
    NODE,
    ActiveCode,
    ActiveSet,
    Assertion,
    Condition,
    DeviceSeen,
    Hold,
    Holder,
    ProcessesListed,
    Promotion,
    Signal,
)
from nodeagent.store.records import Damage
from nodeagent.worker.signals import as_input

"""The source of the agent's own faults."""

DRIVER_UNRESPONSIVE = "driver_unresponsive"
WORKER_CRASHED = "worker_crashed"
LOG_GAP = "log_gap"
DEVICE_LOST = "device_lost"

STORE_DAMAGED = "store_damaged"
STORE_INCOMPLETE = "store_damaged.incomplete"

_OF_EACH_SOURCE = frozenset({DRIVER_UNRESPONSIVE, WORKER_CRASHED})

MAX_EVIDENCE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StampClock:
    """``boottime_ns`` is now on CLOCK_BOOTTIME; ``to_rule_ns`` turns such a stamp into rule time."""

    boottime_ns: Callable[[], int]
    to_rule_ns: Callable[[int], int]

    def rule_ns(self, stamp_ns: int) -> int:
        return self.to_rule_ns(min(stamp_ns, self.boottime_ns()))


def signals(source: str, batch: wire.Batch, clock: StampClock) -> list[Signal]:
    return [as_input(source, said, clock.rule_ns) for said in batch.signals]


def active_set(source: str, said: wire.Reply | wire.CaughtUp, clock: StampClock) -> ActiveSet | None:
    """None if the source has no list of what is active now."""
    if said.active is None:
        return None
    return ActiveSet(
        source=source,
        device=ALL_DEVICES if said.device == wire.SOURCE else said.device,
        codes=tuple(
            ActiveCode(code=active.code, severity=active.severity, evidence=active.evidence)
            for active in said.active
        ),
        begun_ns=clock.rule_ns(said.begun_ns),
        complete=said.complete,
        unread=() if isinstance(said, wire.CaughtUp) else said.unread,
    )


def holders(reply: wire.Reply) -> ProcessesListed:
    if reply.holders is None:
        return ProcessesListed(device=reply.device, holders=(), known=False)
    return ProcessesListed(
        device=reply.device,
        holders=tuple(
            Holder(pid=said.pid, start_time=said.start_time, command=said.command, job=said.job)
            for said in sorted(reply.holders, key=lambda said: (said.pid, said.start_time))
        ),
    )


def device_seen(source: str, device: wire.Device) -> DeviceSeen:
    return DeviceSeen(
        source=source,
        device=device.device,
        kind=device.kind,
        vendor=device.vendor,
        identity=device.identity,
        attributes=device.attributes,
    )


def fault(
    code: str, device: str, assertion: Assertion, *, source: str, reason: str = "", count: int = 1
) -> Signal:
    """A fault of the agent itself, concerning ``source``. A source as a whole counts as the node, where
    the code names the source: other sources stand there too.
    """
    evidence = {"source": source}
    if reason:
        evidence["reason"] = reason[:MAX_EVIDENCE]
    device = NODE if device == wire.SOURCE else device
    return Signal(
        source=AGENT,
        device=device,
        code=f"{code}.{source}" if device == NODE and code in _OF_EACH_SOURCE else code,
        assertion=assertion,
        count=count,
        evidence=evidence,
    )


def node_fault(source: str, code: str, reason: str) -> Signal:
    """A node's fault by which ``source`` cannot be read; reported as its own: it says when that is over."""
    return Signal(
        source=source,
        device=NODE,
        code=code,
        assertion=Assertion.OCCUR,
        evidence={"reason": reason[:MAX_EVIDENCE]},
    )


def faults(
    code: str, devices: Iterable[str], assertion: Assertion, *, source: str, reason: str = ""
) -> list[Signal]:
    return [fault(code, device, assertion, source=source, reason=reason) for device in devices]


def store_damaged(damage: Damage, restored: Sequence[str] = ()) -> Signal:
    """What became of a damaged store, for a person to acknowledge. ``restored`` was put back for it."""
    evidence = {
        "reason": damage.why,
        "kept_as": damage.aside,
        "lost": ", ".join(damage.lost) or "nothing",
        "restored": ", ".join(restored),
        "doubtful": ", ".join(_doubtful(damage)),
    }
    return Signal(
        source=AGENT,
        device=NODE,
        code=STORE_DAMAGED if damage.is_whole else STORE_INCOMPLETE,
        assertion=Assertion.ONCE,
        evidence={key: value[:MAX_EVIDENCE] for key, value in evidence.items() if value},
    )


def _doubtful(damage: Damage) -> Iterator[str]:
    for cell in (one.cell for one in damage.doubtful):
        if isinstance(cell, Hold):
            yield f"an isolation of {cell.device_id} by {cell.owner}: {cell.reason}"
        elif isinstance(cell, Promotion | Condition):
            yield f"{cell.code} at {cell.level} on {cell.device_id}"
