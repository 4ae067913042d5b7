"""What blocks a reset: users of its members, barriers on them, limits, other resets; and which faults ask for
one.

A fault justifies a reset if it is one of the hardware, wants a reset, and was seen in this life of the
daemon. The limits count past resets of a device and of the node. Jobs that claimed the faulty chip may be
ended for a reset where the configuration allows it: no job on another chip of the group, none that is not
registered, and none for a fault that waits until its chip is idle. The answers name each user, fault or hold;
nothing is changed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from nodeagent.core.catalog.levels import RESET_LEVELS, SEPARATING_LEVELS
from nodeagent.core.catalog.settings import ResetSettings
from nodeagent.core.judge import recovery_action
from nodeagent.core.judge.observed import unobserved_reason
from nodeagent.core.model import (
    NODE,
    Belief,
    Claimed,
    Condition,
    Device,
    DeviceProcesses,
    Era,
    Hold,
    Holder,
    HoldKind,
    Job,
    JobStage,
    Level,
    PastResets,
    Presence,
    Promotion,
    Reset,
    ResetsRecorded,
)
from nodeagent.core.state import occupancy
from nodeagent.core.state.names import natural
from nodeagent.core.state.state import EngineState


def wants(state: EngineState, condition: Condition) -> bool:
    """A level that a reset ends, by a fault that a reset ends; not an injected one, not one that only
    restarts its job, and not one that only a kernel line reports.
    """
    if condition.grade.level not in RESET_LEVELS:
        return False
    if (
        condition.origin.injected
        or not condition.grade.affect_verdict
        or recovery_action.only_restarts_its_job(state, condition)
    ):
        return False
    if condition.backing.belief is not Belief.OWN:
        return False
    return state.lookup.facts(condition.code).clear_on.reset


def is_live(era: Era, presence: Presence) -> bool:
    """Whether an observed chip shows the fault as present and not gone since, or reported it in this life.

    What only a reset clears stays open when its driver reports its recovery; it is not there for that.
    """
    if presence.recovered_ns is not None or presence.boot_id != era.boot_id:
        return False
    has_gone = presence.last_ns > presence.occurred_ns
    return presence.present_ns is not None or (presence.occurred_ns >= era.started_ns and not has_gone)


def asking_conditions(state: EngineState, reset: Reset) -> list[Condition]:
    """The faults that asked for the reset, are open, and would still."""
    keys = (("condition", condition_id) for condition_id in reset.conditions)
    found = (state.cells[Condition].get(key) for key in keys)
    return [condition for condition in found if condition is not None and wants(state, condition)]


def count(state: EngineState, device_id: str, settings: ResetSettings) -> int:
    """How many resets of the device, or of the node, count towards its limit now."""
    past = state.get(PastResets, device_id)
    since_ns = state.moment_ns - settings.limit_window_ns
    return sum(1 for at_ns in past.resets_ns if at_ns >= since_ns) if past is not None else 0


def exhausted(state: EngineState, members: tuple[str, ...], settings: ResetSettings) -> str:
    """The first member that has had all its resets, "" if none."""
    return next(
        (device_id for device_id in members if count(state, device_id, settings) >= settings.limit), ""
    )


def limit_text(state: EngineState, spent: str, settings: ResetSettings) -> str:
    """The text about a device that has had all its resets."""
    hours = settings.limit_window_ns / 3.6e12
    return f"{state.device(spent).name} had {settings.limit} resets within {hours:g} h"


def add_past_reset(state: EngineState, reset: Reset, settings: ResetSettings) -> None:
    """Its members and the node are reset at this moment. What the window no longer spans is forgotten, also
    of parts that are no longer here.
    """
    since_ns = state.moment_ns - settings.limit_window_ns
    for cell in state.all(PastResets):
        kept = tuple(at_ns for at_ns in cell.resets_ns if at_ns >= since_ns)
        if kept:
            state.put(replace(cell, resets_ns=kept))
        else:
            state.drop(cell)
    for device_id in (*reset.members, state.node_id):
        before = state.get(PastResets, device_id) or PastResets(device_id=device_id, resets_ns=())
        state.put(replace(before, resets_ns=(*before.resets_ns, state.moment_ns)))


def count_from_now(state: EngineState, reset: Reset, counts: bool = True) -> None:
    """The hardware was reset at some time since the start: it counts from now, so that no window is short.

    Not ``counts``: nothing was done.
    """
    for device_id in (*reset.members, state.node_id):
        cell = state.get(PastResets, device_id)
        if cell is not None and reset.started_ns in cell.resets_ns:
            others = tuple(at_ns for at_ns in cell.resets_ns if at_ns != reset.started_ns)
            state.put(replace(cell, resets_ns=(*others, state.moment_ns) if counts else others))


def recorded(state: EngineState, given: ResetsRecorded) -> bool:
    """Resets of which the record knows more than the store count as the record has them."""
    since_ns = state.moment_ns - state.lookup.settings.reset.limit_window_ns
    changed = False
    for named, resets_ns in given.resets_ns:
        device_id = state.node_id if named == NODE else named
        before = state.get(PastResets, device_id)
        known = [at_ns for at_ns in before.resets_ns if at_ns >= since_ns] if before is not None else []
        counting = tuple(at_ns for at_ns in resets_ns if at_ns >= since_ns)
        if len(counting) > len(known):
            state.put(PastResets(device_id=device_id, resets_ns=counting))
            changed = True
    return changed


def registered_jobs(state: EngineState, reset: Reset, settings: ResetSettings) -> frozenset[str]:
    """The names under which they claimed the chip that asked."""
    asking = asking_conditions(state, reset)
    if not settings.terminate_registered or all(each.level is Level.FREE_RESTART_NPU for each in asking):
        return frozenset()
    claimed = state.get(Claimed, reset.asker_id)
    names = (job for job, _ in claimed.jobs) if claimed is not None else ()
    return frozenset(name for name in names if not _stops_by_itself(state, name))


def _stops_by_itself(state: EngineState, name: str) -> bool:
    """Whether its supervisor is asked to stop it, and has not been given up yet."""
    supervised = [job for job in occupancy.live_jobs(state) if occupancy.covers(name, job.name)]
    return any(job.policy.in_place and job.stage is not JobStage.LEAVING for job in supervised)


def has_registered_jobs(registered: frozenset[str], job: str) -> bool:
    """Whether a process of that job belongs to one: to the job itself, or to a step of it, ``JOB.STEP``."""
    return any(occupancy.covers(each, job) for each in registered)


def users_of_registered_jobs(state: EngineState, reset: Reset, settings: ResetSettings) -> tuple[Holder, ...]:
    """The processes of these jobs on any chip of the group, each once."""
    registered = registered_jobs(state, reset, settings)
    held = (state.get(DeviceProcesses, device_id) for device_id in reset.members)
    every = (holder for cell in held if cell is not None for holder in cell.holders)
    return tuple(dict.fromkeys(holder for holder in every if has_registered_jobs(registered, holder.job)))


MAX_NAMED = 16
"""So many users of the members are named; a job may have a process for each core on each chip."""


class ResetObstacle(NamedTuple):
    """What blocks the start of a reset. ``passes``: it may go away by itself before long, as a chip that is
    not observed yet, or another reset. ``of_job``: it is a job that may be asked to stop, or of one.
    """

    text: str
    passes: bool = False
    of_job: bool = False


_IN_STAGE: Final[Mapping[JobStage, str]] = {
    JobStage.ASKED: ", which is asked to stop",
    JobStage.LEAVING: ", which is asked to leave",
}


def group_of(state: EngineState, device: Device) -> tuple[str, ...]:
    """The ids of the devices that are reset together, the device first, then by name. A driver names the
    group; one that it lists no longer is in it as before, for as long as it sits in its slot.
    """
    group = device.traits.group
    if not group:
        return (device.id,)
    others = [
        other
        for other in state.all(Device)
        if (other.vendor, other.traits.group) == (device.vendor, group)
        and (not other.gone or is_in_its_slot(state, other))
        and other.id != device.id
    ]
    others.sort(key=lambda other: natural(other.name))
    return (device.id, *(other.id for other in others))


def never(state: EngineState, members: tuple[str, ...]) -> str:
    """Why nothing here can reset the group, "" where something can."""
    for device_id in members:
        device = state.get(Device, device_id)
        if device is not None and (why := device.traits.no_reset):
            return f"{device.name} cannot be reset: {why}"
    return ""


def barrier(state: EngineState, members: tuple[str, ...]) -> str:
    """What a person has to see to before any reset may touch the group; "" where there is nothing."""
    for device_id in members:
        device = state.get(Device, device_id)
        if device is None or (device.gone and not is_in_its_slot(state, device)):
            return f"{device_id} is no longer there"
        for condition in state.on(Condition, device_id):
            if condition.level in SEPARATING_LEVELS and not condition.origin.injected:
                return f"{device.name} is at {condition.level} by {condition.code}"
        for promotion in state.on(Promotion, device_id):
            if promotion.effective and promotion.level in SEPARATING_LEVELS:
                return f"{device.name} is at {promotion.level} by the rule {promotion.rule}"
        for hold in state.on(Hold, device_id):
            if hold.kind is HoldKind.ISOLATION:
                return f"{device.name} is isolated by {hold.owner}: {hold.reason}"
    return ""


def excludes(state: EngineState, members: tuple[str, ...]) -> str:
    """Why no reset may touch the group, whatever asks for it; "" where one may."""
    return never(state, members) or barrier(state, members)


def users(
    state: EngineState,
    members: tuple[str, ...],
    settings: ResetSettings,
    ended_first: frozenset[str] = frozenset(),
    without: Collection[Job] = (),
) -> Iterator[ResetObstacle]:
    """Who uses the members: processes, claims and supervised jobs, but for those of jobs that are
    ``ended_first``, and as if those ``without`` had stopped.

    What is not known since the start counts as used.
    """
    for device_id in members:
        name = state.device(device_id).name
        if state.device(device_id).gone:
            yield ResetObstacle(
                f"{name} is reset together with the others, and its driver no longer lists it: "
                "who uses it is unknown; power-cycle the node"
            )
            continue
        held, on_chip = state.get(DeviceProcesses, device_id), occupancy.supervised_on(state, device_id)
        if held is None or not held.is_current:
            yield ResetObstacle(f"the users of {name} are not known", passes=True)
        for holder in held.holders if held is not None else ():
            if has_registered_jobs(ended_first, holder.job):
                continue
            if _is_of(held, holder, without):
                continue
            job = f", job {holder.job}" if holder.job else ""
            text = f"{name} is used by {holder.command or 'a process'} (pid {holder.pid}{job})"
            jobs = [each for each in on_chip if _is_of(held, holder, (each,))]
            goes = any(each.stage in _IN_STAGE for each in jobs)
            yield ResetObstacle(text, passes=goes, of_job=bool(jobs))
        claimed = state.get(Claimed, device_id)
        for job, kind in claimed.jobs if claimed is not None else ():
            if job in ended_first or occupancy.is_supervised(state, job):
                continue
            yield ResetObstacle(f"{name} is claimed by the {kind or 'job'} {job}")
        for user in on_chip:
            if occupancy.is_out_of_the_way(user) or user in without:
                continue
            if not has_registered_jobs(ended_first, user.name):
                text = f"{name} is used by the job {user.name}{_IN_STAGE.get(user.stage, '')}"
                yield ResetObstacle(text, passes=user.stage in _IN_STAGE, of_job=True)
    if not state.cells[Claimed] and not settings.trust_process_list:
        yield from _not_trusted(state, members)


def _is_of(listed: DeviceProcesses | None, holder: Holder, jobs: Iterable[Job]) -> bool:
    return listed is not None and any(occupancy.is_process_of(listed, holder, job) for job in jobs)


def _not_trusted(state: EngineState, members: tuple[str, ...]) -> Iterator[ResetObstacle]:
    """No job hook reports on this node, so that an empty list of processes needs another proof."""
    if empty := occupancy.untrusted(state, members):
        yield ResetObstacle(
            'no job hook has called "nodeagent claim" on this node, no supervised job was the last to use '
            f"{names(state, empty)}, and an empty process list alone is not trusted "
            "(reset.trust_process_list = false); if no job runs there: "
            f"nodeagent claim {state.device(empty[0]).name} --job none --left"
        )


def are_known(state: EngineState, members: tuple[str, ...]) -> bool:
    """Whether all of them are there and observed, and the processes on them known."""
    held = [state.get(DeviceProcesses, device_id) for device_id in members]
    observed = (unobserved_reason(state, state.device(device_id)) is None for device_id in members)
    return all(each is not None and each.is_current for each in held) and all(observed)


def answers(state: EngineState, device_id: str) -> bool:
    """Whether it is there, and not known to be unable to answer: after a start it was not asked yet."""
    device = state.get(Device, device_id)
    if device is None or device.gone:
        return False
    source = state.source_of(device.source, device_id)
    return source is None or source.lost_ns is None


def cooled_ns(state: EngineState, settings: ResetSettings) -> int:
    """When the next reset may start."""
    ended = (reset.ended_ns for reset in state.all(Reset) if not reset.is_dry_run)
    return (
        max((at_ns for at_ns in ended if at_ns is not None), default=-settings.cool_down_ns)
        + settings.cool_down_ns
    )


def of_start(state: EngineState, reset: Reset, settings: ResetSettings) -> tuple[str, ...]:
    """All that blocks its start now, and may go away by itself, as texts."""
    return tuple(each.text for each in obstacles(state, reset, settings))


def obstacles(
    state: EngineState, reset: Reset, settings: ResetSettings, without: Collection[Job] = ()
) -> list[ResetObstacle]:
    """All that blocks its start now, and may go away by itself; as if the jobs ``without`` had stopped. Jobs
    that are asked to stop once nothing else blocks it come last.
    """
    ended_first = registered_jobs(state, reset, settings)
    found = list(users(state, reset.members, settings, ended_first, without))
    found.sort(key=lambda each: each.of_job)
    if len(found) > MAX_NAMED:
        found[MAX_NAMED:] = [ResetObstacle(f"{len(found) - MAX_NAMED} more")]
    return [*found, *_not_seen(state, reset), *_of_node(state, reset, settings)]


def _not_seen(state: EngineState, reset: Reset) -> Iterator[ResetObstacle]:
    """A member that is not observed, or a fault that is not shown."""
    for device_id in reset.members if not _quiesces(state) else ():
        device = state.device(device_id)
        reason = unobserved_reason(state, device)
        if reason is not None and not device.gone:
            yield ResetObstacle(f"{device.name} is not observed: {reason.text}", passes=True)
    if reset.conditions and not any(
        is_live(state.era, each.presence) for each in asking_conditions(state, reset)
    ):
        yield ResetObstacle("no fault that asked for it is seen now", passes=True)
    if not reset.confirmed:
        yield ResetObstacle("no poll has shown the fault since it was proposed", passes=True)


def _of_node(state: EngineState, reset: Reset, settings: ResetSettings) -> Iterator[ResetObstacle]:
    """Another reset, the limit of the node, a quiesce, and a store that is not to be relied on."""
    for other in state.all(Reset):
        if other.id != reset.id and _is_under_way(other):
            yield ResetObstacle(f"{other.id} is under way", passes=True)
    if count(state, state.node_id, settings) >= settings.node_limit:
        hours = settings.limit_window_ns / 3.6e12
        yield ResetObstacle(f"this node had {settings.node_limit} resets within {hours:g} h")
    for hold in _quiesces(state):
        yield ResetObstacle(f"quiesced by {hold.owner}: {hold.reason}")
    if state.condition(state.node_id, state.lookup.facts("store_degraded").key) is not None:
        yield ResetObstacle("the store is not durable")
    if any(each.code.partition(".")[0] == "store_damaged" for each in state.on(Condition, state.node_id)):
        yield ResetObstacle("the store was damaged and has not been acknowledged (nodeagent release node)")


def _quiesces(state: EngineState) -> list[Hold]:
    return [hold for hold in state.on(Hold, state.node_id) if hold.kind is HoldKind.QUIESCE]


def in_progress(state: EngineState, members: Iterable[str]) -> list[Reset]:
    """The resets of any of them that have not ended, dry runs last: nothing has to wait for their end."""
    wanted = set(members)
    found = (reset for reset in state.all(Reset) if not reset.has_ended)
    of_them = [reset for reset in found if not wanted.isdisjoint(reset.members)]
    return sorted(of_them, key=lambda reset: reset.is_dry_run)


def covering(state: EngineState, members: Iterable[str]) -> Reset | None:
    """The reset of any of them that has not ended, and that is no dry run."""
    return next((reset for reset in in_progress(state, members) if not reset.is_dry_run), None)


def names(state: EngineState, device_ids: tuple[str, ...]) -> str:
    found = (state.get(Device, device_id) for device_id in device_ids)
    return ", ".join(device.name if device is not None else "a device that is gone" for device in found)


def is_in_its_slot(state: EngineState, device: Device) -> bool:
    """Whether PCI still shows a device that is gone, so that what is done to its slot is done to it."""
    return state.condition(device.id, state.lookup.facts("device_lost").key) is not None


def _is_under_way(reset: Reset) -> bool:
    return reset.is_under_way and not reset.is_dry_run
