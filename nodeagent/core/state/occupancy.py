"""Who uses a device: processes that a driver lists or listed until just now, claims, and supervised jobs.

A job that crashes is gone before all that it broke has been reported, so what has just left still counts
where the question is whose fault something is. A claim for ``slurm:7`` is one for its step ``slurm:7.0``. A
second supervisor in the cgroup of a job has the name ``NAME/PID``; what is claimed for the cgroup is claimed
for each. Everything here only reads the state.
"""

from collections.abc import Iterable, Iterator, Mapping

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Claimed, Device, DeviceProcesses, Holder, Job, JobStage
from nodeagent.core.state.names import NO_CGROUP, cgroup_of, natural
from nodeagent.core.state.state import EngineState

_LATE_NS = 5 * SECOND_NS
"""A fault is reported at most this long after its process has gone: polls of both lie in between."""

_SHARED_NS = 30 * SECOND_NS
"""What comes this close together on chips of one job has one cause, though that has ended the job."""

TRAINING = "training"
"""The kind of a job that makes no requests: what it has computed since its checkpoint is lost by a fault."""

PID = "pid"
"""The key of the evidence that names the process which a kernel line is about."""


# ---------------------------------------------------------------------- processes


def is_free(state: EngineState, device_id: str) -> bool:
    """Whether it is known that no process uses the device, nor used it until just now. Processes are listed
    by chip, for its parts too.
    """
    held = _on_chip(state, device_id)
    return held is not None and held.is_current and not _of_late(state, held, _LATE_NS)


def is_idle(state: EngineState, device_id: str) -> bool:
    """Whether it is free and no job claims it."""
    claimed = state.get(Claimed, device_id)
    return is_free(state, device_id) and (claimed is None or not claimed.jobs)


def is_known(state: EngineState, device_id: str) -> bool:
    """Whether the processes on the device were reported since the start, and can still be read."""
    held = state.get(DeviceProcesses, device_id)
    return held is not None and held.is_current


def late_users(state: EngineState, device_id: str) -> tuple[Holder, ...]:
    """The processes that use the device, or used it until just now; none where that cannot be read."""
    held = _on_chip(state, device_id)
    return _of_late(state, held, _LATE_NS) if held is not None and held.is_current else ()


def same_job(state: EngineState, one: str, other: str) -> bool:
    """Whether one job uses both devices, or did in the last 30 s. Unknown processes count as yes."""
    cells = _on_chip(state, one), _on_chip(state, other)
    if cells[0] is None or cells[1] is None:
        return True
    jobs = [
        {holder.job for holder in _of_late(state, cell, _SHARED_NS)} for cell in cells if cell is not None
    ]
    return "" in jobs[0] | jobs[1] or bool(jobs[0] & jobs[1])


def _on_chip(state: EngineState, device_id: str) -> DeviceProcesses | None:
    return state.get(DeviceProcesses, state.chip_of(state.device(device_id)).id)


def _of_late(state: EngineState, held: DeviceProcesses, within_ns: int) -> tuple[Holder, ...]:
    return held.holders + (held.left if state.moment_ns - held.left_ns <= within_ns else ())


def names_process(evidence: Mapping[str, str]) -> bool:
    """Whether a line of the kernel names the process that was on the device: lists of processes are read once
    a second, and it may be gone by then.
    """
    return evidence.get(PID, "").isdecimal()


# ---------------------------------------------------------------------- jobs


def live_jobs(state: EngineState) -> list[Job]:
    """Those that have not ended, in the order in which they began."""
    return list(state.live_jobs.values())


def used_by(state: EngineState, job: Job) -> tuple[str, ...]:
    """The ids of the devices that the job uses, by name; none once it has ended."""
    if job.stage is JobStage.ENDED:
        return ()
    known = state.derived.uses.devices.get((job.name, job.devices))
    if known is None:
        known = state.derived.uses.devices[job.name, job.devices] = _used_by(state, job)
    return known


def _used_by(state: EngineState, job: Job) -> tuple[str, ...]:
    found = {
        cell.device_id for cell in state.all(Claimed) if any(covers(each, job.name) for each, _ in cell.jobs)
    }
    devices = [state.get(Device, device_id) for device_id in found.union(job.devices)]
    there = sorted((each for each in devices if each is not None), key=lambda each: natural(each.name))
    return tuple(device.id for device in there)


def chips_of(state: EngineState, job: Job) -> frozenset[str]:
    """The ids of its devices; of a part, that of its chip."""
    device_ids = used_by(state, job)
    if not device_ids:
        return frozenset()
    known = state.derived.uses.chips.get((job.name, job.devices))
    if known is None:
        known = frozenset(state.chip_of(state.device(device_id)).id for device_id in device_ids)
        state.derived.uses.chips[job.name, job.devices] = known
    return known


def supervised_on(state: EngineState, device_id: str) -> list[Job]:
    """The jobs with a supervisor that use the device, or a part of it."""
    on_chip = state.derived.uses.on_chip
    if on_chip is None:
        on_chip = state.derived.uses.on_chip = {}
        for key, job in state.live_jobs.items():
            for chip_id in chips_of(state, job):
                on_chip.setdefault(chip_id, []).append(key)
    return [state.live_jobs[key] for key in on_chip.get(device_id, ())]


def in_place(state: EngineState) -> frozenset[str]:
    """The ids of the chips that only jobs use which may be stopped and run again."""
    allowed: dict[str, bool] = {}
    for cell in state.all(Claimed):
        device = state.get(Device, cell.device_id)
        if device is None or not cell.jobs:
            continue
        chip_id = state.chip_of(device).id
        supervised = all(is_supervised(state, claimed) for claimed, _ in cell.jobs)
        allowed[chip_id] = allowed.get(chip_id, True) and supervised
    for job in live_jobs(state):
        for chip_id in chips_of(state, job):
            allowed[chip_id] = allowed.get(chip_id, True) and job.policy.in_place
    return frozenset(chip_id for chip_id, is_allowed in allowed.items() if is_allowed)


def training(state: EngineState) -> frozenset[str]:
    """The ids of the chips that only jobs use which are known to be training."""
    known: dict[str, bool] = {}
    for cell in state.all(Claimed):
        device = state.get(Device, cell.device_id)
        for claimed, kind in cell.jobs if device is not None else ():
            if device is not None and not is_supervised(state, claimed):
                chip_id = state.chip_of(device).id
                known[chip_id] = known.get(chip_id, True) and kind == TRAINING
    for job in live_jobs(state):
        for chip_id in chips_of(state, job):
            known[chip_id] = known.get(chip_id, True) and job.kind == TRAINING
    return frozenset(chip_id for chip_id, is_training in known.items() if is_training)


def covers(claimed: str, name: str) -> bool:
    """Whether what ``claimed`` has is also for the job ``name``: itself, or a step of it."""
    whose = cgroup_of(name)
    return whose == claimed or whose.startswith(f"{claimed}.")


def is_supervised(state: EngineState, claimed: str) -> bool:
    """Whether the claim is that of a job with a supervisor, which reports more of it."""
    names = state.derived.uses.supervised
    if names is None:
        names = state.derived.uses.supervised = frozenset(
            each for job in live_jobs(state) for each in _claims_of(job.name)
        )
    return claimed in names


def _claims_of(name: str) -> Iterator[str]:
    """All that ``covers`` the job: of a step, the job as well."""
    whose = cgroup_of(name)
    yield whose
    yield from (whose[:place] for place, letter in enumerate(whose) if letter == ".")


def is_out_of_the_way(job: Job) -> bool:
    """It does not run, and its chips may be reset. One that is only watched has not agreed to that."""
    return job.stage is JobStage.HOLDING and not job.policy.only_watches


def is_process_of(listed: DeviceProcesses, holder: Holder, job: Job) -> bool:
    """Whether it is known that the process is one of the job's: below its supervisor, or in its cgroup."""
    owner = listed.owners.get(holder.key)
    if owner is not None:
        return owner == job.name
    return not job.name.startswith(NO_CGROUP) and covers(cgroup_of(job.name), holder.job)


def may_be_of(listed: DeviceProcesses, holder: Holder, job: Job) -> bool:
    """Whether the process may be one of the job's: of a job without a cgroup, any that no other job owns."""
    if listed.owners.get(holder.key) is None and job.name.startswith(NO_CGROUP):
        return not holder.job
    return is_process_of(listed, holder, job)


def _processes_of(state: EngineState, job: Job) -> Iterator[tuple[str, Holder]]:
    """Its processes on its chips as last listed, with the id of the chip."""
    for chip_id in sorted(chips_of(state, job)):
        if (held := state.get(DeviceProcesses, chip_id)) is None:
            continue
        for holder in held.holders:
            if may_be_of(held, holder, job):
                yield chip_id, holder


def untrusted(state: EngineState, device_ids: Iterable[str]) -> tuple[str, ...]:
    """The devices of a group of which an empty list of processes proves nothing, where no job hook reports.

    A list counts if the last processes that left it were of supervised jobs: it has been seen to show a user,
    and to show that the user has gone. A list that was empty since the boot counts where another of the same
    group does: one driver makes both. A list does not count if the last to leave were others: only a claim
    shows that such a job has ended, and does not come back.
    """
    cells = [state.get(DeviceProcesses, each) for each in device_ids]
    lists = [held for held in cells if held is not None]
    works = any((held.holders or held.left) and _is_of_jobs(held) for held in lists)
    doubtful = (held for held in lists if not (works and _is_of_jobs(held)))
    return tuple(held.device_id for held in doubtful if not _has_others(state, held))


def _is_of_jobs(held: DeviceProcesses) -> bool:
    """Whether those that use it, or were the last to, are known to be of supervised jobs."""
    return all(holder.key in held.owners for holder in held.holders or held.left)


def _has_others(state: EngineState, held: DeviceProcesses) -> bool:
    """Whether a process of no supervised job uses it now: then its list is not empty."""
    jobs = supervised_on(state, held.device_id)
    return any(not any(is_process_of(held, holder, job) for job in jobs) for holder in held.holders)


def left_of(state: EngineState, job: Job) -> str:
    """What is left of the job on its chips, or cannot be known; "" where nothing is. A driver that lists no
    processes shows none.
    """
    for chip_id in sorted(chips_of(state, job)):
        held = state.get(DeviceProcesses, chip_id)
        if held is not None and not held.is_current:
            return f"the users of {state.device(chip_id).name} are not known"
    for chip_id, holder in _processes_of(state, job):
        name = state.device(chip_id).name
        return f"{name} is used by {holder.command or 'a process'} (pid {holder.pid})"
    return ""
