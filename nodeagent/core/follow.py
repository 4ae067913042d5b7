"""What follows from a change of a cell, by its type: indexes, timers, and which devices are to be judged
again.

The engine registers these functions with its state, which calls them after each change. They work out only
what is kept over the cells; they judge nothing, emit nothing, and change cells only where a level's phase
follows from who uses the chip.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.core.catalog.levels import RESET_LEVELS
from nodeagent.core.catalog.lookup import Lookup
from nodeagent.core.model import (
    Affects,
    Claimed,
    Condition,
    Device,
    Era,
    Hold,
    Job,
    JobStage,
    Presence,
    Promotion,
    Reset,
    RuleCell,
    Sighting,
    Source,
    Trace,
)
from nodeagent.core.rules.kinds import RAISING
from nodeagent.core.state import deadlines, occupancy
from nodeagent.core.state.cells import Key, judged_alike, restarts_again, shown_alike, weighed_alike
from nodeagent.core.state.derived import Uses
from nodeagent.core.state.indexes import Coded, Indexes
from nodeagent.core.state.state import EngineState, Follower

OnDevice = Condition | Promotion | Hold


def _condition(state: EngineState, key: Key, before: Condition | None, after: Condition | None) -> None:
    if before is None or after is None:
        _index(state, key, before, after)
        _group(state, key, before, after)
    elif judged_alike(before, after):
        may_ask = after.grade.level in RESET_LEVELS and _may_ask_now(
            state.era, before.presence, after.presence
        )
        if may_ask or (state.cells[Job] and restarts_again(before, after)):
            state.unreviewed[after.device_id] = None
        deadlines.arm(state, key, after)
        return
    state.derived.contributions.pop(key, None)
    for cell in (before, after):
        if cell is not None:
            state.mark_reach(cell)
    if after is None or after.grade.affects is Affects.SELF:
        state.reaching.pop(key, None)
    else:
        state.reaching[key] = None
    deadlines.arm(state, key, after)


def _may_ask_now(era: Era, before: Presence, after: Presence) -> bool:
    """Whether it may ask for a reset for which it did not ask before: what continues is not weighed."""
    return before.heard_ns <= max(era.started_ns, era.catalog_ns) or not shown_alike(before, after)


def _promotion(state: EngineState, key: Key, before: Promotion | None, after: Promotion | None) -> None:
    deadlines.arm(state, key, after)
    if before is not None and after is not None and weighed_alike(before, after):
        return
    state.derived.contributions.pop(key, None)
    if after is None or after.effective:
        state.pending.pop(key, None)
    else:
        state.pending[key] = None
    affects = state.indexes.reaching.get(key)
    _index(state, key, before, after)
    affects = state.indexes.reaching.get(key, affects)
    _on_device(state, key, before, after)
    if affects is not None:
        state.mark_affected(affects)


def _hold(state: EngineState, key: Key, before: Hold | None, after: Hold | None) -> None:
    state.derived.contributions.pop(key, None)
    _on_device(state, key, before, after)
    state.timers.set(key, None if after is None else deadlines.of_hold(after))


def _reset(state: EngineState, key: Key, _: Reset | None, after: Reset | None) -> None:
    state.timers.set(key, None if after is None else after.due_ns)
    if after is not None:
        state.unreviewed[after.asker_id] = None


def _job(state: EngineState, key: Key, before: Job | None, after: Job | None) -> None:
    """Whatever waits for one of its chips is reviewed again; claims also decide which these are."""
    state.timers.set(key, None if after is None else deadlines.of_job(after, state.moment_ns))
    if after is None or after.stage is JobStage.ENDED:
        state.live_jobs.pop(key, None)
    else:
        state.live_jobs[key] = after
    if not _use_alike(before, after):
        state.derived.uses = Uses()
    state.derived.ended_jobs.pop(key[1], None)
    state.unreviewed.update(dict.fromkeys(device.id for device in state.cells[Device].values()))
    _judge_by_jobs(state)


def _use_alike(before: Job | None, after: Job | None) -> bool:
    """Whether both are live, or neither is, and name the same devices."""
    if before is None or after is None:
        return False
    is_ended = before.stage is JobStage.ENDED
    return is_ended is (after.stage is JobStage.ENDED) and before.devices == after.devices


def _claimed(state: EngineState, _: Key, __: Claimed | None, ___: Claimed | None) -> None:
    if state.live_jobs:
        state.derived.uses = Uses()
    _judge_by_jobs(state)


def _judge_by_jobs(state: EngineState) -> None:
    """Where the configuration asks for it, chips that are used only by jobs which may be run again in place
    are judged as in mode graceful: their faults ask for something else, and at other times. On chips that
    only training uses no fault is tolerated for the sake of requests.
    """
    in_place, training = state.in_place, state.training
    wanted = state.lookup.settings.jobs.in_place_registered
    state.in_place = occupancy.in_place(state) if wanted else frozenset()
    state.training = occupancy.training(state)
    for chip_id in sorted((in_place ^ state.in_place) | (training ^ state.training)):
        if (chip := state.get(Device, chip_id)) is None:
            continue
        for device in (chip, *state.parts(chip_id)):
            for condition in state.on(Condition, device.id):
                _judge_again(state, ("condition", condition.id), condition)
            for promotion in state.on(Promotion, device.id):
                _judge_again(state, ("promotion", promotion.id), promotion)
        state.mark((chip_id,))


def _judge_again(state: EngineState, key: Key, cell: deadlines.Timed) -> None:
    """It is in the phase that it would have reached, and nothing falls due in the past."""
    after = cell
    if not state.awaits(cell.source, cell.device_id):
        after = deadlines.in_its_phase(state.lookup_on(cell.device_id), cell, state.moment_ns)
    if after != cell:
        state.put(after)
    state.derived.contributions.pop(key, None)
    deadlines.arm(state, key, after)


def _sighting(state: EngineState, key: Key, before: Sighting | None, after: Sighting | None) -> None:
    if after is not None and after.suppressed_ns is not None:
        state.suppressed.add(after.code, key)
    elif before is not None and before.suppressed_ns is not None:
        state.suppressed.remove(before.code, key)


def _device(state: EngineState, key: Key, before: Device | None, after: Device | None) -> None:
    if state.live_jobs:
        state.derived.uses = Uses()
    if before is not None:
        state.names.remove(before)
        state.mark((before.id,))
        if chip_id := before.traits.chip_id:
            state.parts_of.remove(chip_id, key)
    if after is not None:
        state.names.add(after)
        if chip_id := after.traits.chip_id:
            state.parts_of.add(chip_id, key)
        state.mark((after.id,))
        if before is None or before.attributes != after.attributes:
            for each in (after, *state.parts(after.id)):
                for condition in state.on_device.get((Condition, each.id), ()):
                    state.derived.contributions.pop(condition, None)
        _mark_reached_from(state, after.id)
    if before is None or after is None:
        _judge_by_jobs(state)


def _mark_reached_from(state: EngineState, device_id: str) -> None:
    """Mark what the faults of this device reach: which chips are behind it may have changed."""
    for reaching in state.reaching:
        condition: Condition = state.cells[Condition][reaching]
        if condition.device_id == device_id:
            state.mark_reach(condition)
    for reaching, affects in state.indexes.reaching.items():
        if state.cells[Promotion][reaching].device_id == device_id:
            state.mark_affected(affects)


def _source(state: EngineState, key: Key, before: Source | None, after: Source | None) -> None:
    name = (after or before or Source(name="")).name
    state.mark(device.id for device in state.cells[Device].values() if device.source == name)
    state.mark((state.node_id,))
    if after is not None and after.awaited:
        state.awaited[key] = None
    else:
        state.awaited.pop(key, None)
    state.timers.set(key, None if after is None else deadlines.of_source(state.lookup, after))


def _era(state: EngineState, _: Key, before: Era | None, after: Era | None) -> None:
    if after is not None and after.digest and (before is None or before.digest != after.digest):
        state.lookup = Lookup(state.catalogs[after.digest])
        state.derived.contributions.clear()
        state.indexes = Indexes(state.lookup)
        for of in (Condition, Promotion, Trace):
            for key, cell in state.cells[of].items():
                state.indexes.add(key, cell)
        _judge_by_jobs(state)
    state.mark(device.id for device in state.cells[Device].values())


def _rule_cell(state: EngineState, key: Key, _: RuleCell | None, after: RuleCell | None) -> None:
    deadlines.arm(state, key, after)


def _index(state: EngineState, key: Key, before: Coded | None, after: Coded | None) -> None:
    if before is None and after is not None:
        state.indexes.add(key, after)
    elif before is not None and after is None:
        state.indexes.remove(key, before)


def _on_device(
    state: EngineState, key: Key, before: Promotion | Hold | None, after: Promotion | Hold | None
) -> None:
    _group(state, key, before, after)
    state.mark(cell.device_id for cell in (before, after) if cell is not None)


def _group(state: EngineState, key: Key, before: OnDevice | None, after: OnDevice | None) -> None:
    if before is None and after is not None:
        state.on_device.add((type(after), after.device_id), key)
    elif before is not None and after is None:
        state.on_device.remove((type(before), before.device_id), key)


FOLLOWERS: Final[Mapping[type, Follower]] = {
    Condition: _condition,
    Promotion: _promotion,
    Hold: _hold,
    Reset: _reset,
    Job: _job,
    Claimed: _claimed,
    Sighting: _sighting,
    Trace: _index,
    Device: _device,
    Source: _source,
    Era: _era,
    **{kind.cell: _rule_cell for kind in RAISING},
}
"""A type without a follower changes nothing but its cells."""
