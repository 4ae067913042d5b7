"""The users of a device: its processes, as a driver lists them, whose they are, and the jobs that claim it.

What follows from that is worked out in ``occupancy``. Nothing is opened here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from nodeagent.core.faults import ending
from nodeagent.core.model import Claimed, Claims, DeviceProcesses, ProcessesListed
from nodeagent.core.state import limits, registry
from nodeagent.core.state.state import EngineState


def listed(state: EngineState, given: ProcessesListed) -> bool:
    """The processes on a device. True if they are the first since the start, or differ from those before."""
    device = registry.find(state, given.device)
    if device is None:
        return False
    before = state.get(DeviceProcesses, device.id)
    if not given.known:
        return _unreadable(state, before)
    if before is not None and before.holders == given.holders and before.is_current:
        return False
    after = DeviceProcesses(device_id=device.id, holders=given.holders)
    if before is not None:
        left = tuple(holder for holder in before.holders if holder not in given.holders)
        if left:
            after = replace(after, left=left, left_ns=state.moment_ns)
        else:
            after = replace(after, left=before.left, left_ns=before.left_ns)
        after = replace(after, owners=_owners(after, before.owners))
    state.put(after)
    ending.close_after_job(state, device.id, given.holders)
    state.mark((device.id,))
    return True


def owned(state: EngineState, job: str, processes: Iterable[str]) -> bool:
    """These processes, by ``Holder.key``, are of the supervised job. True if that was news."""
    owners, changed = dict.fromkeys(processes, job), False
    for before in state.all(DeviceProcesses) if owners else ():
        after = replace(before, owners=_owners(before, {**before.owners, **owners}))
        if after != before:
            state.put(after)
            state.mark((before.device_id,))
            changed = True
    return changed


def _owners(listed: DeviceProcesses, known: Mapping[str, str]) -> Mapping[str, str]:
    """Those of the processes that are listed, or were the last to leave."""
    keys = dict.fromkeys(holder.key for holder in (*listed.holders, *listed.left))
    return {key: known[key] for key in keys if key in known}


def _unreadable(state: EngineState, before: DeviceProcesses | None) -> bool:
    if before is None or not before.is_current:
        return False
    state.put(replace(before, is_current=False))
    state.mark((before.device_id,))
    return True


def claimed(state: EngineState, given: Claims) -> bool:
    """A job uses a device, or has left it. An empty cell is kept: it shows that hooks report here."""
    device = registry.find(state, given.device)
    if device is None:
        return False
    before = state.get(Claimed, device.id)
    others = tuple(job for job in before.jobs if job[0] != given.job) if before is not None else ()
    jobs = (*others, (given.job, given.kind)) if given.claimed else others
    if (before is not None and jobs == before.jobs) or len(jobs) > limits.MAX_CLAIMS_ON_DEVICE:
        return False
    state.put(Claimed(device_id=device.id, jobs=jobs))
    state.mark((device.id,))
    return True


def began_again(state: EngineState) -> None:
    """After a start of the daemon: the processes on devices are not known yet."""
    for cell in state.all(DeviceProcesses):
        state.put(replace(cell, is_current=False))


def rebooted(state: EngineState) -> None:
    """No process outlives its boot, and no job: the scheduler places it again, or its hook never came."""
    for claimed in state.all(Claimed):
        state.put(replace(claimed, jobs=()))
    for cell in state.all(DeviceProcesses):
        ending.close_after_job(state, cell.device_id, ())
        state.drop(cell)
