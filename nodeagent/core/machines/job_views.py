"""How a job is shown: its devices, their handling, and what a scheduler does best with it. It changes
nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from nodeagent.core.catalog.levels import strictest
from nodeagent.core.judge.judge import contributions, judgement
from nodeagent.core.model import (
    Claimed,
    Condition,
    Device,
    Handling,
    Job,
    JobNote,
    JobStage,
    JobView,
    Recommendation,
    Verdict,
    Wanted,
)
from nodeagent.core.state import occupancy
from nodeagent.core.state.derived import ClaimedJob, Judgement
from nodeagent.core.state.state import EngineState

_BY_STATUS: Final[Mapping[int | None, Recommendation]] = {
    75: Recommendation.RESCHEDULE,
    85: Recommendation.RESTART_IN_PLACE,
    86: Recommendation.RESCHEDULE_ISOLATED,
    87: Recommendation.GIVE_UP,
}
"""The statuses of a supervisor (``nodeagent.job.model.Status``). Any other is the command's own: only
its author knows what it means.
"""

_BY_HANDLING: Final[Mapping[Handling, Recommendation]] = {
    Handling.NONE: Recommendation.NONE,
    Handling.JOB_STRATEGY: Recommendation.NONE,
    Handling.RERUN_REQUEST: Recommendation.RERUN_REQUEST,
    Handling.RESTART_JOB: Recommendation.RESTART_IN_PLACE,
    Handling.RESET_WHEN_IDLE: Recommendation.NONE,
    Handling.STOP_RESET_RESTART: Recommendation.RESTART_IN_PLACE,
    Handling.RESCHEDULE: Recommendation.RESCHEDULE,
}


def recommended(
    handling: Handling, isolated: bool, stage: JobStage | None = None, status: int | None = None
) -> Recommendation:
    """``handling`` is the strictest on its chips and the node, ``isolated`` is true where the node or a chip
    of it takes no new work. ``stage`` is None where the job has no supervisor; ``status`` is that of one that
    has ended, None where its supervisor died: its scheduler knows no less then.
    """
    if stage is JobStage.ENDED:
        return _BY_STATUS.get(status, Recommendation.NONE)
    if stage in (JobStage.ASKED, JobStage.HOLDING):
        return Recommendation.HOLD
    found = Recommendation.RESCHEDULE if stage is JobStage.LEAVING else _BY_HANDLING[handling]
    moves = found is Recommendation.RESCHEDULE
    return Recommendation.RESCHEDULE_ISOLATED if moves and isolated else found


def handling_for(kind: str, handling: Handling) -> Handling:
    """What a handling means for a job of that kind. Training makes no requests: it is run again."""
    is_rerun = handling is Handling.RERUN_REQUEST and kind == occupancy.TRAINING
    return Handling.RESTART_JOB if is_rerun else handling


_NO_WORK: Final = (Verdict.ISOLATE, Verdict.NO_NEW_JOBS)

WANTED: Final = {
    JobStage.HOLDING: Wanted.HOLD,
    JobStage.RUNNING: Wanted.RUN,
    JobStage.ASKED: Wanted.STOP,
    JobStage.LEAVING: Wanted.LEAVE,
}
"""What a supervisor is to do follows from the stage; one that has ended is sent nothing."""


def concerned(state: EngineState, device_ids: Iterable[str]) -> list[Device]:
    """The devices, and the node, whose faults are those of a job that uses them."""
    return [state.device(device_id) for device_id in dict.fromkeys((*device_ids, state.node_id))]


def _handling_of(state: EngineState, kind: str, device_ids: Iterable[str]) -> Handling:
    """The strictest on them and the node."""
    return strictest(
        handling_for(kind, judgement(state, device).handling) for device in concerned(state, device_ids)
    )


def is_isolated(state: EngineState, device_ids: Iterable[str]) -> bool:
    """Whether one of them, or the node, takes no new work."""
    return any(judgement(state, device).verdict in _NO_WORK for device in concerned(state, device_ids))


def shown_run(job: Job) -> int:
    """The run that it makes, or may make next; of a job that leaves or has ended, the last that it made (0:
    none).
    """
    is_over = job.stage in (JobStage.LEAVING, JobStage.ENDED)
    return job.run - 1 if is_over and not job.started else job.run


def note_of(state: EngineState, job: Job, run: int, why: str) -> JobNote:
    handling, isolated = _handling_and_isolation(state, job, occupancy.used_by(state, job))
    return JobNote(
        name=job.name,
        run=run,
        stage=job.stage,
        why=why,
        recommended=recommended(handling, isolated, job.stage, job.status),
        strategy=job.policy.strategy,
    )


def _handling_and_isolation(
    state: EngineState, job: Job, device_ids: tuple[str, ...]
) -> tuple[Handling, bool]:
    """The strictest handling of its chips and the node, and whether one of them takes no new work. One that
    has ended uses none; there may be many of them, and each is shown with every change.
    """
    if job.stage is JobStage.ENDED:
        return Handling.NONE, job.isolated
    isolated = job.isolated if job.stage is JobStage.LEAVING else is_isolated(state, device_ids)
    return _handling_of(state, job.kind, device_ids), isolated


def views(state: EngineState) -> tuple[JobView, ...]:
    """Those with a supervisor first, in the order in which they began; the others by name."""
    return (*(_view(state, job) for job in state.all(Job)), *_claimed(state))


def _view(state: EngineState, job: Job) -> JobView:
    """The view of a job. Once it has ended it is made only once: it changes no more, and there may be
    hundreds.
    """
    if job.stage is not JobStage.ENDED:
        return _supervised(state, job)
    known = state.derived.ended_jobs.get(job.name)
    if known is None:
        known = state.derived.ended_jobs[job.name] = _supervised(state, job)
    return known


def _supervised(state: EngineState, job: Job) -> JobView:
    device_ids = occupancy.used_by(state, job)
    handling, isolated = _handling_and_isolation(state, job, device_ids)
    asking = _asking(state, job, device_ids, handling)
    return JobView(
        name=job.name,
        kind=job.kind,
        devices=device_ids,
        recommended=recommended(handling, isolated, job.stage, job.status),
        stage=job.stage,
        wanted=WANTED.get(job.stage),
        run=shown_run(job) if job.stage is JobStage.ENDED else job.run,
        why=job.why,
        code=job.code,
        device_id=job.device_id,
        isolated=isolated,
        handling=handling.value,
        handling_device=asking[0],
        handling_code=asking[1],
        sub_health=_sub_health(state, job, device_ids),
        by_operator=job.by_operator,
        policy=job.policy,
        peer=job.peer,
        since_ns=job.since_ns,
        due_ns=job.due_ns,
        said=job.said,
        status=job.status,
        slow=job.slow,
    )


def _asking(state: EngineState, job: Job, device_ids: tuple[str, ...], handling: Handling) -> tuple[str, str]:
    """The name of the device, and the code of the fault, that the handling follows from."""
    if handling is Handling.NONE:
        return "", ""
    for device in concerned(state, device_ids):
        for contribution in contributions(state, device):
            if handling_for(job.kind, contribution.stance[1]) is handling:
                return device.name, contribution.reason.code
    return "", ""


def _sub_health(state: EngineState, job: Job, device_ids: tuple[str, ...]) -> str:
    """What has made a device of it sub-healthy since it began: with the rest it was placed here."""
    began_ns = job.began_ns or job.granted_ns
    for device in concerned(state, device_ids) if device_ids else ():
        for contribution in contributions(state, device):
            condition = state.get(Condition, contribution.reason.id)
            is_so = contribution.stance[1] is Handling.JOB_STRATEGY and condition is not None
            if is_so and condition is not None and condition.grade.level_since_ns > began_ns:
                return f"{device.name} has {condition.code}"
    return ""


def _claimed(state: EngineState) -> list[JobView]:
    """Each is made again only where its claims or a verdict have changed: this is shown with every change."""
    kinds: dict[str, str] = {}
    devices: dict[str, list[str]] = {}
    for cell in state.all(Claimed):
        for job, kind in cell.jobs:
            kinds[job] = kind
            devices.setdefault(job, []).append(cell.device_id)
    known, state.derived.claimed_jobs = state.derived.claimed_jobs, {}
    for name in sorted(devices):
        if occupancy.is_supervised(state, name):
            continue
        device_ids = tuple(devices[name])
        judged = tuple(judgement(state, device) for device in concerned(state, device_ids))
        shown = known.get(name)
        if shown is None or (shown.kind, shown.devices, shown.judged) != (kinds[name], device_ids, judged):
            shown = _only_claims(name, kinds[name], device_ids, judged)
        state.derived.claimed_jobs[name] = shown
    return [shown.view for shown in state.derived.claimed_jobs.values()]


def _only_claims(
    name: str, kind: str, device_ids: tuple[str, ...], judged: tuple[Judgement, ...]
) -> ClaimedJob:
    handling = strictest(handling_for(kind, each.handling) for each in judged)
    isolated = any(each.verdict in _NO_WORK for each in judged)
    view = JobView(
        name=name,
        kind=kind,
        devices=device_ids,
        recommended=recommended(handling, isolated),
        isolated=isolated,
        handling=handling.value,
    )
    return ClaimedJob(kind, device_ids, judged, view)
