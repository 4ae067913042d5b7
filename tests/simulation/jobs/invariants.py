"""What must hold of supervised jobs, from the views, the events, and what the twins say truly ran."""

from collections.abc import Iterator, Mapping

from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    Event,
    Handling,
    JobBegun,
    JobStage,
    JobView,
    Level,
    Outcome,
    Reset,
    ResetMode,
    RunReported,
    RunReportKind,
    Started,
    Verdict,
    View,
)
from nodeagent.core.state.occupancy import TRAINING
from tests.simulation.history import Broken, HardwareReset, Step
from tests.simulation.invariants import general_invariants
from tests.simulation.jobs.in_the_way import InTheWay
from tests.simulation.jobs.tables import job_catalogs
from tests.simulation.watch import Invariant
from tests.simulation.world import World

_FOLLOWING: Mapping[JobStage, frozenset[JobStage]] = {
    JobStage.HOLDING: frozenset({JobStage.RUNNING, JobStage.LEAVING, JobStage.ENDED}),
    JobStage.RUNNING: frozenset({JobStage.ASKED, JobStage.HOLDING, JobStage.LEAVING, JobStage.ENDED}),
    JobStage.ASKED: frozenset({JobStage.HOLDING, JobStage.LEAVING, JobStage.ENDED}),
    JobStage.LEAVING: frozenset({JobStage.ENDED}),
    JobStage.ENDED: frozenset(),
}
_BARS = (Handling.RESCHEDULE, Handling.STOP_RESET_RESTART)
_STOPS = (*_BARS, Handling.RESTART_JOB, Handling.RERUN_REQUEST)
"""All jobs here are training, which makes no request again."""

_NO_WORK = (Verdict.ISOLATE, Verdict.NO_NEW_JOBS)


def job_invariants() -> list[Invariant]:
    """Fresh ones: they remember what they have seen."""
    return [
        *general_invariants(job_catalogs()),
        NoDoubleRun(),
        NothingIsResetUnderAJob(),
        SaidOnceReportedOnce(),
        StageAfterStage(),
        AskedForAReason(),
        AskedForNothingInVain(),
        HeldForAReason(),
        EndsInItsTime(),
        LeavesAsItIs(),
        NothingIsLostAtACrash(),
    ]


def _supervised(view: View) -> dict[str, JobView]:
    return {job.name: job for job in view.jobs if job.stage is not None}


def _goes_on(step: Step, job: JobView) -> bool:
    """False where this step made another job of that name of it."""
    begins = [event for event in step.events if event.kind.value == "job_begun"]
    return all(event.job is None or event.job.name != job.name for event in begins)


def _to_be_done(view: View, job: JobView) -> Iterator[Reset]:
    for reset in view.resets:
        approved = reset.mode is ResetMode.ON or (reset.mode is ResetMode.ASK and reset.approved)
        if approved and not reset.has_ended and not set(reset.members).isdisjoint(job.devices):
            yield reset


class NoDoubleRun(Invariant):
    name = "two runs of a job are never made at once"

    def __init__(self) -> None:
        self._world: World | None = None

    def on_start(self, world: World) -> None:
        self._world = world

    def on_rest(self, engine: Engine, queued: int) -> None:
        if self._world is not None and self._world.overlaps:
            raise Broken(self.name, self._world.overlaps[0])


class NothingIsResetUnderAJob(Invariant):
    name = "no chip is reset under a process, or under a job that is not held"

    def __init__(self) -> None:
        self._world: World | None = None
        self._seen: View | None = None
        self._jobs: dict[str, JobView] = {}

    def on_start(self, world: World) -> None:
        self._world = world

    def on_step(self, step: Step) -> None:
        if step.after is not self._seen:
            self._seen, self._jobs = step.after, _supervised(step.after)

    def on_reset(self, reset: HardwareReset) -> None:
        assert self._world is not None
        for part in self._world.parts:
            if part.identity in reset.identities and part.holders:
                raise Broken(self.name, f"{reset.attempt} of {part.name}, on which is {part.holders}")
        for job in self._jobs.values():
            uses = not set(job.devices).isdisjoint(reset.identities)
            if uses and job.stage is not JobStage.HOLDING:
                raise Broken(self.name, f"{reset.attempt} under {job.name}, which is {job.stage}")


class SaidOnceReportedOnce(Invariant):
    """That a run that was asked has stopped is reported once its chips show the same."""

    name = "what a supervisor says is taken once and reported once"

    def __init__(self) -> None:
        self._to_be_reported: dict[str, int] = {}

    def on_step(self, step: Step) -> None:
        if isinstance(step.given, RunReported):
            self._said(step, step.given)
            return
        after = _supervised(step.after)
        for name, number in tuple(self._to_be_reported.items()):
            job = after.get(name)
            if job is not None and job.stage is JobStage.ASKED:
                continue
            del self._to_be_reported[name]
            is_held = job is not None and job.stage in (JobStage.HOLDING, JobStage.RUNNING)
            if len(_events_of(step, name, number)) != is_held:
                raise Broken(self.name, f"{number} of {name}, which is {job}, was reported: {is_held}")

    def _said(self, step: Step, given: RunReported) -> None:
        before = _supervised(step.before).get(given.job)
        reported = _events_of(step, given.job, given.number)
        if before is None or before.stage is JobStage.ENDED or given.number <= before.said:
            if reported:
                raise Broken(self.name, f"{given} was reported again: {reported}")
            return
        after = _supervised(step.after)[given.job]
        self._to_be_reported.pop(given.job, None)
        wanted = 0 if given.what is RunReportKind.STARTED and given.run == 1 else 1
        has_ended = given.what in (RunReportKind.STOPPED, RunReportKind.EXITED) and given.run >= before.run
        if has_ended and after.stage is JobStage.ASKED:
            self._to_be_reported[given.job], wanted = given.number, 0
        if len(reported) != wanted or after.said != given.number:
            raise Broken(self.name, f"{given} was reported {len(reported)} times, and {after.said} is taken")


def _events_of(step: Step, job: str, number: int) -> list[Event]:
    return [
        event
        for event in step.events
        if event.job is not None and event.job.name == job and event.evidence.get("number") == str(number)
    ]


class StageAfterStage(Invariant):
    name = "a job goes from stage to stage, and never back or past one"

    def on_step(self, step: Step) -> None:
        if step.after is step.before:
            return
        after = _supervised(step.after)
        for name, was in _supervised(step.before).items():
            now = after.get(name)
            if now is None or not _goes_on(step, now):
                continue
            if now.stage is not was.stage and not self._follows(was, now):
                raise Broken(self.name, f"{name}: {was.stage} -> {now.stage}, run {was.run} -> {now.run}")
            # Of one that has ended the last run that it made is shown, not one that it might have made next.
            least = was.run - 1 if now.stage is JobStage.ENDED else was.run
            if now.run < least or (now.run > was.run + 1 and not isinstance(step.given, JobBegun)):
                raise Broken(self.name, f"{name}: run {was.run} -> {now.run}")
            returned = now.stage is JobStage.RUNNING and was.stage is JobStage.ASKED
            if returned and now.run == was.run:
                raise Broken(self.name, f"{name} was asked to stop run {was.run}, and then to go on")

    def _follows(self, was: JobView, now: JobView) -> bool:
        """One step of the daemon may span two or three of a job."""
        assert was.stage is not None
        reached: set[JobStage | None] = {was.stage}
        for _ in range(3):
            reached |= {next_one for stage in reached if stage is not None for next_one in _FOLLOWING[stage]}
        if now.stage not in reached:
            return False
        skips = was.stage is JobStage.ASKED and now.stage is JobStage.RUNNING and now.run == was.run
        return not skips


class AskedForAReason(Invariant):
    name = (
        "a job is asked to stop for a reset that will be done, or for its own fault, and only if it allows it"
    )

    def __init__(self) -> None:
        self._in_the_way = InTheWay()

    def on_step(self, step: Step) -> None:
        self._in_the_way.see(step)
        if step.after is step.before:
            return
        before = _supervised(step.before)
        for name, job in _supervised(step.after).items():
            was = before.get(name)
            if job.stage is JobStage.ASKED and (was is None or was.stage is not JobStage.ASKED):
                self._check_asked(step, job)
            if job.stage is JobStage.RUNNING and job.policy.in_place:
                self._check_running(step, job)

    def _check_asked(self, step: Step, job: JobView) -> None:
        if not job.policy.in_place:
            raise Broken(self.name, f"{job.name} does not allow it")
        if job.by_operator or any(_to_be_done(step.after, job)):
            return
        if any(one.grade.user_induced and one.device_id in job.devices for one in step.after.conditions):
            return
        on_chips = [one for one in step.after.conditions if one.device_id in job.devices]
        if job.kind == TRAINING and any(one.level is Level.RESTART_REQUEST for one in on_chips):
            return  # it makes no request again; what the chip shows may be another fault's handling
        handlings = {
            one.handling for one in step.after.devices if one.id in job.devices or one.name == "node"
        }
        if handlings.isdisjoint(_STOPS):
            raise Broken(self.name, f"{job.name} is asked for {job.why!r} at {handlings}")

    def _check_running(self, step: Step, job: JobView) -> None:
        """A fault of its own chip that a reset in progress is for stops it, unless others are in the way."""
        by_id = {one.id: one for one in step.after.conditions}
        for reset in _to_be_done(step.after, job):
            asking = [by_id[each] for each in reset.conditions if each in by_id]
            stopping = [
                one
                for one in asking
                if one.level is Level.RESTART_NPU and not one.grade.user_induced and one.presence.is_shown
            ]
            is_to_stop = reset.is_pending and reset.asker_id in job.devices and stopping
            blocked = self._in_the_way.of(step, reset, certainly=True)
            if is_to_stop and not blocked and not self._in_the_way.may_be_more(step, reset):
                raise Broken(self.name, f"{job.name} runs on beside {reset.id}")


class AskedForNothingInVain(Invariant):
    name = "no job is asked while something that does not yield blocks the reset"

    def __init__(self) -> None:
        self._in_the_way = InTheWay()

    def on_step(self, step: Step) -> None:
        self._in_the_way.see(step)
        if step.after is step.before:
            return
        before = _supervised(step.before)
        for name, job in _supervised(step.after).items():
            was = before.get(name)
            if job.stage is not JobStage.ASKED or job.by_operator:
                continue
            if was is not None and was.stage is JobStage.ASKED:
                continue
            for reset in _to_be_done(step.after, job):
                is_for_it = job.why.startswith(f"{reset.id} of ")
                if is_for_it and (blocked_by := self._in_the_way.of(step, reset)):
                    raise Broken(self.name, f"{name} is asked for {reset.id} beside {blocked_by}")


class HeldForAReason(Invariant):
    name = "a job is held as long as its chips are not well, and no longer"

    def __init__(self) -> None:
        self._in_the_way = InTheWay()

    def on_step(self, step: Step) -> None:
        self._in_the_way.see(step)
        if step.after is step.before:
            return
        before = _supervised(step.before)
        for name, job in _supervised(step.after).items():
            if job.policy.only_watches:
                continue
            was = before.get(name)
            if job.stage is JobStage.HOLDING and not job.by_operator and not self._bars(step, job):
                raise Broken(self.name, f"{name} is held by nothing")
            granted = was is not None and was.stage is JobStage.HOLDING and job.stage is JobStage.RUNNING
            if granted and not self._found_running(step, name) and (why := self._bars(step, job)):
                raise Broken(self.name, f"{name} was granted run {job.run} beside {why}")

    def _found_running(self, step: Step, name: str) -> bool:
        """Its supervisor made the run while nobody could be asked."""
        given = step.given
        return isinstance(given, JobBegun | RunReported) and given.job == name

    def _bars(self, step: Step, job: JobView) -> str:
        released = set[str]()
        for reset in step.after.resets:
            uses = not set(reset.members).isdisjoint(job.devices)
            if uses and not reset.has_ended and reset.mode is not ResetMode.DRY_RUN:
                if job.stage is JobStage.HOLDING or not self._is_released(step, job, reset):
                    return reset.id
                released |= {hold.id for hold in step.after.holds if hold.id.endswith(f"!{reset.id}")}
        blameless = {one.id for one in step.after.conditions if one.grade.user_induced}
        for device in step.after.devices:
            if device.id not in job.devices and device.name != "node":
                continue
            is_isolated = device.verdict is Verdict.ISOLATE
            if not released.isdisjoint(reason.id for reason in device.reasons):
                is_isolated = device.handling is Handling.RESCHEDULE
            reasons = {reason.id for reason in device.reasons if reason.level is not None}
            only_its_own = bool(reasons) and reasons <= blameless and not is_isolated
            if (device.handling in _BARS and not only_its_own) or is_isolated:
                return f"{device.name} at {device.handling}, {device.verdict}"
        return ""

    def _is_released(self, step: Step, job: JobView, reset: Reset) -> bool:
        """It has run before, and others block the reset."""
        may_block = self._in_the_way.of(step, reset) or self._in_the_way.may_be_more(step, reset)
        return job.run > 1 and reset.is_pending and bool(may_block)


class EndsInItsTime(Invariant):
    name = "a job is neither asked nor held for longer than its time"

    def on_step(self, step: Step) -> None:
        if step.after is step.before:
            return
        for job in _supervised(step.after).values():
            waits = job.stage in (JobStage.ASKED, JobStage.HOLDING)
            if waits and job.due_ns is not None and job.due_ns < step.now_ns:
                raise Broken(self.name, f"{job.name} is {job.stage} at {step.now_ns}, due {job.due_ns}")


class LeavesAsItIs(Invariant):
    name = "a job leaves only if it allows anything, and says whether its chips or the node take new work"

    def on_step(self, step: Step) -> None:
        if step.after is step.before:
            return
        before = _supervised(step.before)
        for name, job in _supervised(step.after).items():
            was = before.get(name)
            if job.stage is not JobStage.LEAVING or (was is not None and was.stage is JobStage.LEAVING):
                continue
            if job.policy.only_watches:
                raise Broken(self.name, f"{name} allows nothing")
            reported = [event for event in step.events if _sends_away(event, name)]
            # Much may come to an end in one step: it was as before, or is as after it.
            found = {_is_out(view, job) for view in (step.before, step.after)}
            if len(reported) != 1 or job.isolated not in found:
                raise Broken(self.name, f"{name}: isolated {job.isolated}, reported {len(reported)} times")


def _is_out(view: View, job: JobView) -> bool:
    concerned = [one for one in view.devices if one.id in job.devices or one.name == "node"]
    return any(one.verdict in _NO_WORK for one in concerned)


def _sends_away(event: Event, name: str) -> bool:
    return event.job is not None and event.job.name == name and event.evidence.get("wanted") == "leave"


class NothingIsLostAtACrash(Invariant):
    name = "after a crash every job is as it was, and after a reboot none has a supervisor"

    def __init__(self) -> None:
        self._jobs: tuple[JobView, ...] = ()

    def on_step(self, step: Step) -> None:
        self._jobs = step.after.jobs
        if isinstance(step.given, Started) and step.before.boot_id not in ("", step.given.boot_id):
            left = [job.name for job in _supervised(step.after).values() if job.stage is not JobStage.ENDED]
            if left:
                raise Broken(self.name, f"{left} are still there")

    def on_rebuilt(self, engine: Engine, differences: Outcome) -> None:
        if engine.view().jobs != self._jobs:
            raise Broken(self.name, f"{self._jobs} became {engine.view().jobs}")

    def on_end(self, engine: Engine, world: World) -> None:
        if left := [job.name for job in engine.view().jobs if job.wanted is not None]:
            raise Broken(self.name, f"{left} never ended")
