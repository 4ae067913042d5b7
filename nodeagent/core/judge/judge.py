"""The verdict of a device: what is open on it and its chip, and what reaches it from others, weighed
together.

Whether the device is observed is worked out in ``observed``. Nothing here emits anything.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from nodeagent.core.catalog.levels import (
    DRAIN,
    HANDLING_RANK,
    SEPARATING_LEVELS,
    VERDICT_RANK,
    Stance,
    stance,
    stricter,
)
from nodeagent.core.judge import recovery_action
from nodeagent.core.judge.observed import last_verdict_expired, unobserved_reasons
from nodeagent.core.model import (
    NODE,
    Affects,
    Condition,
    Device,
    Handling,
    Hold,
    HoldKind,
    Level,
    Promotion,
    Reason,
    Verdict,
)
from nodeagent.core.state.derived import Contribution, Judgement
from nodeagent.core.state.registry import is_behind
from nodeagent.core.state.state import EngineState

C = TypeVar("C", Condition, Promotion, Hold)

_OF_HOLDS: dict[HoldKind, Stance] = {
    HoldKind.ISOLATION: (Verdict.ISOLATE, Handling.RESCHEDULE),
    HoldKind.RESET_PENDING: (Verdict.ISOLATE, Handling.NONE),
    HoldKind.QUIESCE: (Verdict.ALLOW, Handling.NONE),
}
"""A pending reset keeps new work off the whole group; what runs on the others is judged by their faults."""


def judgement(state: EngineState, device: Device) -> Judgement:
    """The device's level, verdict and handling as they follow from everything open on it or reaching it."""
    known = state.derived.judgements.get(device.id)
    if known is None:
        unobserved = unobserved_reasons(state, device)
        unknown = bool(unobserved) and last_verdict_expired(state, device)
        known = state.derived.judgements[device.id] = judge(contributions(state, device), unobserved, unknown)
    return known


def judge(given: Iterable[Contribution], unobserved: tuple[Reason, ...], unknown: bool) -> Judgement:
    """The strictest verdict and, by itself, the strictest handling over all contributions.

    ``unobserved`` is why the device is not observed, () if it is; only where ``unknown`` is also
    true does that turn ALLOW into UNKNOWN (the last verdict holds for a while after a restart).
    """
    level, verdict, handling = Level.NOT_HANDLE, Verdict.ALLOW, Handling.NONE
    subhealthy = network_unhealthy = False
    reasons: list[Reason] = []
    for contribution in given:
        reasons.append(contribution.reason)
        if contribution.level is not None:
            level = stricter(level, contribution.level)
            subhealthy = subhealthy or contribution.level is Level.SUB_HEALTH
            is_fault = contribution.level is not Level.NOT_HANDLE
            network_unhealthy = network_unhealthy or (contribution.of_network and is_fault)
        verdict = max(verdict, contribution.stance[0], key=VERDICT_RANK.__getitem__)
        handling = max(handling, contribution.stance[1], key=HANDLING_RANK.__getitem__)
    reasons += unobserved
    if unobserved and unknown and verdict is Verdict.ALLOW:
        verdict = Verdict.UNKNOWN
    return Judgement(
        level=level,
        verdict=verdict,
        handling=handling,
        subhealthy=subhealthy,
        network_unhealthy=network_unhealthy,
        observed=not unobserved,
        reasons=tuple(reasons),
    )


def contributions(state: EngineState, device: Device) -> Iterator[Contribution]:
    """Conditions, promotions and holds on the device and on the chip that it is a part of, then what reaches
    that from others.
    """
    chip = state.chip_of(device)
    concerned = dict.fromkeys((device.id, chip.id))
    for device_id in concerned:
        yield from _contributions_on(state, device_id)
    if chip.traits.excluded:
        return
    for device_id, affects, contribution in _reaching(state):
        if device_id not in concerned and _reaches(state, device_id, affects, chip):
            yield contribution if affects is Affects.NODE else replace(contribution, level=None)


def _reaching(state: EngineState) -> Iterator[tuple[str, Affects, Contribution]]:
    """The contributions to more than their own device: that device, what they affect, the contribution."""
    for key in state.reaching:
        condition: Condition = state.cells[Condition][key]
        if condition.grade.affect_verdict:
            yield condition.device_id, condition.grade.affects, _kept(state, condition, _of_condition)
    for key, affects in state.indexes.reaching.items():
        promotion: Promotion = state.cells[Promotion][key]
        if promotion.effective:
            yield promotion.device_id, affects, _kept(state, promotion, _of_promotion)


def _contributions_on(state: EngineState, device_id: str) -> Iterator[Contribution]:
    for condition in state.on(Condition, device_id):
        if condition.grade.affect_verdict:
            yield _kept(state, condition, _of_condition)
    for promotion in state.on(Promotion, device_id):
        if promotion.effective:
            yield _kept(state, promotion, _of_promotion)
        elif promotion.level in SEPARATING_LEVELS:
            yield _kept(state, promotion, _of_pending_promotion)
    for hold in state.on(Hold, device_id):
        yield _kept(state, hold, _of_hold)


def _kept(state: EngineState, cell: C, work_out: Callable[[EngineState, C], Contribution]) -> Contribution:
    """The contribution of the cell, worked out once and kept until the cell changes."""
    key = (type(cell).__name__.lower(), cell.id)
    contribution = state.derived.contributions.get(key)
    if contribution is None:
        contribution = state.derived.contributions[key] = work_out(state, cell)
    return contribution


def _of_promotion(state: EngineState, promotion: Promotion) -> Contribution:
    return Contribution(
        reason=Reason(
            kind="promotion",
            id=promotion.id,
            code=promotion.code,
            level=promotion.level,
            text=promotion.name,
        ),
        stance=stance(promotion.level, promotion.phase, state.lookup_on(promotion.device_id).settings),
        level=promotion.level,
    )


def _of_pending_promotion(_: EngineState, promotion: Promotion) -> Contribution:
    """Its rule is about to isolate the device, unless others turn out to show the same. Until then it takes
    no new work.
    """
    return Contribution(
        reason=Reason(
            kind="promotion",
            id=promotion.id,
            code=promotion.code,
            text=f"{promotion.name}; the rule {promotion.rule} may isolate it soon",
        ),
        stance=DRAIN,
    )


def _of_hold(_: EngineState, hold: Hold) -> Contribution:
    return Contribution(
        reason=Reason(kind="hold", id=hold.id, text=f"{hold.owner}: {hold.reason}"),
        stance=_OF_HOLDS[hold.kind],
    )


def _of_condition(state: EngineState, condition: Condition) -> Contribution:
    is_of_the_job = recovery_action.only_restarts_its_job(state, condition)
    is_none_needed = is_of_the_job and not condition.grade.user_induced
    reason = Reason(
        kind="condition",
        id=condition.id,
        code=condition.code,
        level=condition.level,
        text=f"{condition.name}; the chip needs no recovery" if is_none_needed else condition.name,
    )
    key = state.lookup.facts(condition.code).key
    return Contribution(
        reason=reason,
        stance=recovery_action.stance_of(state, condition),
        level=condition.level,
        of_network=state.lookup.source(condition.source).is_of_network(key),
    )


def _reaches(state: EngineState, device_id: str, affects: Affects, device: Device) -> bool:
    if affects is Affects.NODE:
        return device.name == NODE
    return is_behind(device, state.device(device_id))
