"""Signals that open nothing: those that the tables call no fault, and those that anybody may forge."""

from nodeagent.core.catalog.classify import classify
from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.devices import registry
from nodeagent.core.faults.notices import notice
from nodeagent.core.model import NODE, Assertion, Signal
from nodeagent.core.rules import relation
from nodeagent.core.state.state import State


def noted_only(state: State, signal: Signal, facts: Facts, at_ns: int) -> bool:
    """Its row says that it is no fault. A condition from before the row said so is left to close.

    To relation rules it is an occurrence as any other: what ends a fault is often no fault.
    """
    if signal.assertion is Assertion.RECOVER:
        return False
    fault = classify(state.lookup, signal.source, facts, signal.severity)
    device = registry.find(state, signal.device)
    was_new = _notice(
        state, signal, facts, f"{signal.assertion} from {signal.source}; the tables list it as a notice"
    )
    if device is None or facts.relations is None or signal.injected:
        return was_new
    return relation.passed(state, device, facts, fault.level, at_ns) or was_new


def from_user_space(state: State, signal: Signal, facts: Facts) -> bool:
    """Anyone with a privileged container can write such a line: it informs."""
    why = "written to the kernel log by user space, which may forge any line"
    return _notice(state, signal, facts, why, userspace=True)


def of_previous_boot(state: State, signal: Signal, facts: Facts) -> bool:
    """What the node logged before it stopped: it tells why, and says nothing of how the node is."""
    why = "logged in the previous boot, which no shutdown ended; nothing is done about it"
    return _notice(state, signal, facts, why, userspace=not signal.trusted)


def of_no_chip(state: State, signal: Signal, facts: Facts) -> bool:
    """A line names a chip that the vendor's driver does not list."""
    return _notice(state, signal, facts, "its vendor's driver lists no such chip")


def _notice(state: State, signal: Signal, facts: Facts, why: str, userspace: bool = False) -> bool:
    """Emit it about the device if it is known, else about the node: it makes no device."""
    device = registry.find(state, signal.device) or registry.resolve(state, NODE, None)
    if device is None:
        return False
    fault = classify(state.lookup, signal.source, facts, signal.severity)
    if device.name != signal.device:
        why += f"; it names {signal.device}"
    return notice(
        state,
        device,
        code=facts.code,
        name=fault.name,
        level=fault.level,
        count=signal.count,
        userspace=userspace,
        why=why,
        source=signal.source,
        evidence=signal.evidence,
    )
