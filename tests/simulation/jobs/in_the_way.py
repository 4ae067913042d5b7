"""A twin of what blocks a reset besides jobs that stop for it, from inputs and views alone."""

from collections.abc import Iterator

from nodeagent.core.model import (
    AGENT,
    Claims,
    DeviceView,
    EventKind,
    HoldKind,
    JobStage,
    JobView,
    Level,
    ProcessesListed,
    Reset,
    ResetMode,
    ResetStage,
    Started,
    View,
)
from tests.simulation.history import Step

_WANTING = (Level.RESTART_REQUEST, Level.RESTART_BUSINESS, Level.FREE_RESTART_NPU, Level.RESTART_NPU)
_UNDER_WAY = (ResetStage.RUNNING, ResetStage.VERIFYING)


class InTheWay:
    """It remembers which lists of processes are of this life, whether a hook has ever reported, and when
    resets began.
    """

    def __init__(self) -> None:
        self._listed: set[str] = set()
        self._has_hook = False
        self._began_ns: list[int] = []

    def see(self, step: Step) -> None:
        given = step.given
        if isinstance(given, Started):
            self._listed.clear()
        elif isinstance(given, ProcessesListed):
            (self._listed.add if given.known else self._listed.discard)(given.device)
        elif isinstance(given, Claims):
            self._has_hook = True
        for event in step.events:
            if event.kind is EventKind.ACTION_STARTED and event.evidence["mode"] != ResetMode.DRY_RUN:
                self._began_ns.append(event.at_ns)

    def of(self, step: Step, reset: Reset, *, certainly: bool = False) -> list[str]:
        """What blocks it, but for jobs that stop for it (``certainly``: of which that is sure)."""
        view = step.after
        members = [device for device in view.devices if device.id in reset.members]
        jobs = [job for job in view.jobs if job.stage not in (None, JobStage.ENDED)]
        stopping = {job.name for job in jobs if _stops(view, job, reset, certainly=certainly)}
        return [
            *(each for device in members for each in self._on(device, jobs, stopping)),
            *self._of_node(step, reset),
        ]

    def may_be_more(self, step: Step, reset: Reset) -> bool:
        """Whether the node may have had all its resets: they count from their end, not if refused, and by a
        clock that may have jumped.
        """
        if any(each.startswith("this node had") for each in reset.hindered):
            return True
        settings = step.catalog.settings.reset
        since_ns = step.now_ns - 2 * settings.limit_window_ns
        return sum(at_ns >= since_ns for at_ns in self._began_ns) >= settings.node_limit

    def _on(self, device: DeviceView, jobs: list[JobView], stopping: set[str]) -> Iterator[str]:
        if device.name not in self._listed or device.holders is None or not device.observed:
            yield f"{device.name} is not known"
        live = {job.name for job in jobs}
        yield from (f"{each}" for each in device.holders or () if each.job not in stopping)
        yield from (f"a claim of {name}" for name, _ in device.claims if f"{name}.0" not in live)
        for job in jobs:
            is_away = job.stage is JobStage.HOLDING and not job.policy.only_watches
            if device.id in job.devices and job.name not in stopping and not is_away:
                yield f"{job.name}, {job.stage}"

    def _of_node(self, step: Step, reset: Reset) -> Iterator[str]:
        view = step.after
        if not self._has_hook:
            yield "no hook"
        if not reset.confirmed:
            yield "not confirmed"
        others = (each for each in view.resets if each.id != reset.id and not each.is_dry_run)
        yield from (each.id for each in others if each.stage in _UNDER_WAY)
        yield from (each.id for each in view.holds if each.kind is HoldKind.QUIESCE)
        own = (each.code for each in view.conditions if each.source == AGENT)
        yield from (code for code in own if code.startswith("store_"))


def _stops(view: View, job: JobView, reset: Reset, *, certainly: bool) -> bool:
    """Whether it stops for the reset: it yields, or has a fault of its own. If not ``certainly``, the fault
    may not ask for a reset yet.
    """
    if job.stage is JobStage.ASKED:
        return True
    levels = (Level.RESTART_NPU,) if certainly else _WANTING
    sure = (each for each in view.conditions if each.presence.is_shown and not each.grade.user_induced)
    asking = sure if certainly else iter(view.conditions)
    faulty = {each.device_id for each in asking if each.level in levels}
    own = not faulty.isdisjoint(set(job.devices) & set(reset.members))
    ordered = not certainly and reset.asker_id in job.devices
    return job.stage is JobStage.RUNNING and job.policy.in_place and (job.policy.yields or own or ordered)
