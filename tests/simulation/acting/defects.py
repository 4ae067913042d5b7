"""What mutations put in the place of the policy's own functions: each is one slip of the pen."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from nodeagent.core.catalog.settings import ResetSettings
from nodeagent.core.engine import Engine
from nodeagent.core.faults import ending
from nodeagent.core.machines import devices, reset_blockers, reset_policy, reset_proposals, resets
from nodeagent.core.machines.reset_blockers import ResetObstacle
from nodeagent.core.model import (
    ActionResult,
    ActionState,
    ActiveSet,
    Condition,
    Device,
    Hold,
    HoldKind,
    PastResets,
    Reset,
    ResetMode,
    ResetStage,
)
from nodeagent.core.state.state import EngineState
from tests.simulation.mutations.mutation import Replacement

# ---------------------------------------------------------------------- limits

_replace_part = devices._replace_part
_exhausted, _of_start, _charge, _resume = (
    reset_blockers.exhausted,
    reset_blockers.of_start,
    reset_blockers.add_past_reset,
    Engine.resume,
)


def one_more(state: EngineState, members: tuple[str, ...], settings: ResetSettings) -> str:
    return _exhausted(state, members, replace(settings, limit=settings.limit + 1))


def one_more_for_the_node(
    state: EngineState, reset: Reset, settings: ResetSettings, *more: Any
) -> tuple[str, ...]:
    return _of_start(state, reset, replace(settings, node_limit=settings.node_limit + 1), *more)


def count_the_asker(state: EngineState, reset: Reset, settings: ResetSettings) -> None:
    _charge(state, replace(reset, members=(reset.asker_id,)), settings)


def resume_uncounted(self: Engine, now_ns: int) -> None:
    _resume(self, now_ns)
    for past in self._state.all(PastResets):
        self._state.drop(past)


def replace_uncounted(state: EngineState, old: Device) -> None:
    _replace_part(state, old)
    past = state.get(PastResets, old.id)
    if past is not None:
        state.drop(past)


def cooled_at_once(state: EngineState, settings: ResetSettings) -> int:
    return 0


# ---------------------------------------------------------------------- what stands in the way

_users, _why_withdrawn = reset_blockers.users, reset_policy._why_withdrawn


def users_without(words: str) -> Replacement:
    """Whoever is named in these words is not seen."""

    def users(*arguments: Any) -> Iterator[ResetObstacle]:
        return (user for user in _users(*arguments) if words not in user.text)

    return reset_blockers, "users", users


def starting_despite(words: str) -> Replacement:
    def of_start(*arguments: Any) -> tuple[str, ...]:
        return tuple(found for found in _of_start(*arguments) if words not in found)

    return reset_blockers, "of_start", of_start


def kept_despite(words: str) -> Replacement:
    def why_withdrawn(*arguments: Any) -> str:
        why = _why_withdrawn(*arguments)
        return "" if words in why else why

    return reset_policy, "_why_withdrawn", why_withdrawn


def no_words(*_: Any) -> str:
    return ""


def no(*_: Any) -> bool:
    return False


def nothing(*_: Any, **__: Any) -> None:
    return None


# ---------------------------------------------------------------------- eligibility

_wants, _is_over = reset_blockers.wants, resets._is_over


def wanting(change: Callable[[Condition], Condition]) -> Replacement:
    def wants(state: EngineState, condition: Condition) -> bool:
        return _wants(state, change(condition))

    return reset_blockers, "wants", wants


def of_the_chip(condition: Condition) -> Condition:
    return replace(condition, grade=replace(condition.grade, user_induced=False))


def not_injected(condition: Condition) -> Condition:
    return replace(condition, origin=replace(condition.origin, injected=False))


def ends_what_is_shown(state: EngineState, condition: Condition, reset: Reset) -> bool:
    return _is_over(state, replace(condition, presence=replace(condition.presence, present_ns=None)), reset)


def asks_after_a_reload(state: EngineState, condition: Condition) -> bool:
    live = reset_blockers.wants(state, condition) and reset_blockers.is_live(state.era, condition.presence)
    return live and reset_policy._wants_one_now(state, condition)


def is_always_live(*_: Any) -> bool:
    return True


# ---------------------------------------------------------------------- steps

_start, _end, _verified, _resulted, _propose, _raise = (
    resets.start,
    resets.end,
    resets.verified,
    resets.resulted,
    reset_proposals.propose,
    resets.raise_own,
)


def start_in_earnest(state: EngineState, reset: Reset, settings: ResetSettings) -> None:
    on_paper = reset.mode is ResetMode.DRY_RUN
    _start(state, replace(reset, mode=ResetMode.ON) if on_paper else reset, settings)


def start_and_let_go(state: EngineState, reset: Reset, settings: ResetSettings) -> None:
    _start(state, reset, settings)
    for hold in _holds_of(state, reset):
        ending.lift(state, hold, "it has started")


def end_holding(state: EngineState, reset: Reset, *rest: Any, **more: Any) -> None:
    holds = _holds_of(state, reset)
    _end(state, reset, *rest, **more)
    for hold in holds:
        state.put(hold)


def _holds_of(state: EngineState, reset: Reset) -> list[Hold]:
    pending = (hold for hold in state.all(Hold) if hold.kind is HoldKind.RESET_PENDING)
    return [hold for hold in pending if hold.id.endswith(f"!{reset.id}")]


def done_at_once(state: EngineState, given: ActionResult) -> bool:
    changed = _resulted(state, given)
    reset = state.get(Reset, given.action_id)
    if reset is not None and reset.stage is ResetStage.VERIFYING:
        resets._succeed(state, replace(reset, verified=reset.members))
    return changed


def verified_by_any_poll(state: EngineState, reset: Reset, device_id: str, given: ActiveSet) -> bool:
    return _verified(state, reset, device_id, replace(given, begun_ns=state.now_ns))


def verified_whatever_it_shows(state: EngineState, reset: Reset, device_id: str, given: ActiveSet) -> bool:
    return _verified(state, reset, device_id, replace(given, codes=()))


def takes_anyones_result(state: EngineState, given: ActionResult) -> bool:
    running = next((one for one in state.all(Reset) if one.stage is ResetStage.RUNNING), None)
    return running is not None and _resulted(state, replace(given, action_id=running.id))


def takes_a_late_result(state: EngineState, given: ActionResult) -> bool:
    return _resulted(state, replace(given, attempt=0))


def takes_any_result_for_done(state: EngineState, given: ActionResult) -> bool:
    failed = given.state is ActionState.FAILED
    return _resulted(state, replace(given, state=ActionState.DONE) if failed else given)


def propose_approved(state: EngineState, *rest: Any) -> bool:
    proposed = _propose(state, *rest)
    for reset in state.all(Reset) if proposed else ():
        state.put(replace(reset, approved=True))
    return proposed


def raise_no_failure(state: EngineState, device_id: str, code: str, why: str) -> None:
    if code != "reset_failed":
        _raise(state, device_id, code, why)
