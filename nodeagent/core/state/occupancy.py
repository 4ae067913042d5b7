"""Who holds a device: the processes that a driver lists, and for a while those that it listed before; and who
claims it: the jobs whose hooks said so.

A job that crashes is gone before all that it broke has been reported, so what has just left still counts
where the question is whose fault something is. It opens nothing and emits nothing.
"""

from collections.abc import Mapping

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Claimed, Held, Holder
from nodeagent.core.state.state import State

LATE_NS = 5 * SECOND_NS
"""A fault is reported at most this long after its process has gone: polls of both lie in between."""
SHARED_NS = 30 * SECOND_NS
"""What comes this close together on chips of one job has one cause, though that has ended the job."""


def is_free(state: State, device_id: str) -> bool:
    """Whether it is known that no process holds the device, nor held it until just now. Processes are listed
    by chip, for its parts too.
    """
    held = _on_chip(state, device_id)
    return held is not None and held.is_current and not _of_late(state, held, LATE_NS)


def is_idle(state: State, device_id: str) -> bool:
    """Whether it is free and no job claims it."""
    claimed = state.get(Claimed, device_id)
    return is_free(state, device_id) and (claimed is None or not claimed.jobs)


PID = "pid"
"""The key of the evidence that names the process which a kernel line is about."""


def names_holder(evidence: Mapping[str, str]) -> bool:
    """Whether a line of the kernel names the process that was on the device: lists of processes are read once
    a second, and it may be gone by then.
    """
    return evidence.get(PID, "").isdecimal()


def is_known(state: State, device_id: str) -> bool:
    """Whether the holders of the device were reported since the start, and can still be read."""
    held = state.get(Held, device_id)
    return held is not None and held.is_current


def same_job(state: State, one: str, other: str) -> bool:
    """Whether one job uses both devices, or did in the last 30 s. Unknown processes count as yes."""
    cells = _on_chip(state, one), _on_chip(state, other)
    if cells[0] is None or cells[1] is None:
        return True
    jobs = [{holder.job for holder in _of_late(state, cell, SHARED_NS)} for cell in cells if cell is not None]
    return "" in jobs[0] | jobs[1] or bool(jobs[0] & jobs[1])


def late_holders(state: State, device_id: str) -> tuple[Holder, ...]:
    """The processes that hold the device, or held it until just now; none where that cannot be read."""
    held = _on_chip(state, device_id)
    return _of_late(state, held, LATE_NS) if held is not None and held.is_current else ()


def _on_chip(state: State, device_id: str) -> Held | None:
    return state.get(Held, state.chip_of(state.device(device_id)).id)


def _of_late(state: State, held: Held, within_ns: int) -> tuple[Holder, ...]:
    return held.holders + (held.left if state.moment_ns - held.left_ns <= within_ns else ())
