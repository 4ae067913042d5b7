"""What is to be done in Slurm, one effect at a time: a pure function of what the daemon and Slurm reported.

    bad for a while      look ──> drain, unless it takes no work already ──> acknowledge
    bad, drained by us   look ──> another reason, if a worse fault came or that one is over
    well for a while     look ──> resume, if the drain is ours
    unknown              nothing

It goes by the state and not by changes: the next look mends whatever either side forgets or does twice. It
never touches a drain whose reason is not ours, nor a node that is down, which takes no work.
"""

from dataclasses import dataclass, replace
from typing import Final

from nodeagent.client import Position
from nodeagent.schedulers.loop import Decision, LoopTick
from nodeagent.schedulers.slurm.verdicts import (
    Standing,
    Verdicts,
    comment,
    is_outdated,
    is_own,
    is_own_comment,
    reason,
)

SECOND_NS: Final = 1_000_000_000

FRESH_NS: Final = SECOND_NS
"""A drain is ended by no older answer of Slurm: a person may have taken the node over since."""

IDLE_LOOKS: Final = 20
"""So many times as long between two looks where nothing is wrong: thousands of nodes ask one slurmctld."""

LONGEST_PAUSE_NS: Final = 30 * SECOND_NS
MOST_PAUSES: Final = 5
"""2, 4, 8, 16, 30 s: after that no longer."""

REQUEUE_TRIES: Final = 3

_UNKNOWN: Final = Verdicts(standing=Standing.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSettings:
    """Well for ``resume_after_ns`` before it is resumed; ``look_each_ns`` between looks at what is wrong."""

    resume_after_ns: int
    look_each_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What Slurm reports of it. ``takes_work`` is false also of one that is down or fails."""

    takes_work: bool
    is_drained: bool
    reason: str = ""
    comment: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether we have drained it."""
        return self.is_drained and is_own(self.reason)


@dataclass(frozen=True, slots=True)
class LookAtNode:
    """Ask Slurm how the node is."""


@dataclass(frozen=True, slots=True)
class Drain:
    """Drain the node, or give another reason to our own drain."""

    reason: str


@dataclass(frozen=True, slots=True)
class Annotate:
    """Set the comment of the node: all that takes no new work, "" for nothing."""

    comment: str


@dataclass(frozen=True, slots=True)
class Resume:
    pass


@dataclass(frozen=True, slots=True)
class Requeue:
    """The number of a job of Slurm that is to run elsewhere, if it still runs here."""

    job: int


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Everything up to here has had its effect."""

    position: Position


SlurmEffect = LookAtNode | Drain | Annotate | Resume | Requeue | Acknowledge


@dataclass(frozen=True, slots=True)
class NodeReported:
    """What the daemon reports. ``jobs`` are those that are to run elsewhere, () where the site leaves them
    alone.
    """

    position: Position
    verdicts: Verdicts
    jobs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """The answer to ``Look``."""

    node: Node


@dataclass(frozen=True, slots=True)
class EffectDone:
    """The effect that was given last has had its effect."""


@dataclass(frozen=True, slots=True)
class EffectFailed:
    """It has not, and is given again after a pause."""


@dataclass(frozen=True, slots=True)
class Unsure:
    """The node was not resumed: the daemon no longer reports it as well."""


SlurmInput = NodeReported | NodeSeen | EffectDone | EffectFailed | Unsure


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmState:
    """What is known of the daemon and of Slurm, and what is being done."""

    position: Position | None = None
    acknowledged: Position | None = None
    verdicts: Verdicts = _UNKNOWN
    bad_seq: int = 0
    """The number of the event at which the standing last changed: of a bad node, at which it became bad."""

    well_since_ns: int | None = None
    """Since when it is well, None: it is not."""

    jobs: tuple[int, ...] = ()
    requeued: frozenset[int] = frozenset()
    """The jobs that were requeued or could not be."""

    node: Node | None = None
    seen_ns: int = 0
    """When Slurm last reported how the node is."""

    busy: SlurmEffect | None = None
    """The effect that is being done."""

    failures: int = 0
    """How many orders failed in a row."""

    tries: int = 0
    """How often one requeue failed."""

    not_before_ns: int = 0
    """No effect is given before: the last one failed."""


def decide(
    state: SlurmState, given: SlurmInput | LoopTick, now_ns: int, settings: SlurmSettings
) -> Decision[SlurmState, SlurmEffect]:
    state = taken(state, given, now_ns)
    effect = _next(state, now_ns, settings)
    if effect is not None:
        return Decision(state=replace(state, busy=effect), effect=effect, wake_ns=None)
    if state.busy is None and now_ns >= state.not_before_ns:
        state = replace(state, failures=0)
    return Decision(state=state, effect=None, wake_ns=next_deadline(state, settings))


def next_deadline(state: SlurmState, settings: SlurmSettings) -> int | None:
    """When ``Tick`` is due; None where only an answer, or the daemon, can change anything."""
    if state.busy is not None or state.position is None:
        return None
    due = [state.seen_ns + _between_looks_ns(state, settings)] if state.node else [state.not_before_ns]
    resumed_ns = _resume_ns(state, settings)
    if resumed_ns is not None:
        due.append(resumed_ns)
    return max(min(due), state.not_before_ns)


# ---------------------------------------------------------------------- what is known


def taken(state: SlurmState, given: SlurmInput | LoopTick, now_ns: int) -> SlurmState:
    """The state after one input."""
    match given:
        case NodeReported():
            return _reported(state, given, now_ns)
        case NodeSeen():
            # What failed before may fail again, though Slurm answers: its pauses go on growing.
            return replace(state, busy=None, not_before_ns=0, node=given.node, seen_ns=now_ns)
        case EffectDone():
            return _done(state, now_ns)
        case EffectFailed():
            return _failed(state, now_ns)
        case Unsure():
            state = _failed(state, now_ns)
            return replace(state, well_since_ns=None if state.well_since_ns is None else now_ns)
        case LoopTick():
            return state


def _reported(state: SlurmState, reported: NodeReported, now_ns: int) -> SlurmState:
    before, standing = state.verdicts.standing, reported.verdicts.standing
    if standing is not before or state.position is None:
        # Slurm is asked again: its last answer may be from long ago.
        state = replace(
            state,
            node=None,
            bad_seq=reported.position.seq,
            well_since_ns=now_ns if standing is Standing.WELL else None,
        )
    return replace(
        state,
        position=reported.position,
        verdicts=reported.verdicts,
        jobs=reported.jobs,
        requeued=state.requeued.intersection(reported.jobs),
    )


def _free(state: SlurmState) -> SlurmState:
    return replace(state, busy=None, failures=0, not_before_ns=0)


def _done(state: SlurmState, now_ns: int) -> SlurmState:
    effect, state = state.busy, _free(state)
    match effect:
        case Drain():
            before = state.node.comment if state.node is not None else ""
            drained = Node(takes_work=False, is_drained=True, reason=effect.reason, comment=before)
            return replace(state, node=drained, seen_ns=now_ns)
        case Annotate():
            node = state.node
            return replace(state, node=None if node is None else replace(node, comment=effect.comment))
        case Resume():
            # Whether it is well or down, and so takes work, the next look shows.
            return replace(state, node=None)
        case Requeue():
            return replace(state, tries=0, requeued=state.requeued | {effect.job})
        case Acknowledge():
            return replace(state, acknowledged=effect.position)
        case _:
            return state


def _failed(state: SlurmState, now_ns: int) -> SlurmState:
    failures = state.failures + 1
    if isinstance(state.busy, Requeue):
        if state.tries + 1 >= REQUEUE_TRIES:
            return replace(_free(state), tries=0, requeued=state.requeued | {state.busy.job})
        state = replace(state, tries=state.tries + 1)
    pause_ns = min(SECOND_NS << min(failures, MOST_PAUSES), LONGEST_PAUSE_NS)
    return replace(state, busy=None, node=None, failures=failures, not_before_ns=now_ns + pause_ns)


# ---------------------------------------------------------------------- what follows


def _next(state: SlurmState, now_ns: int, settings: SlurmSettings) -> SlurmEffect | None:
    if state.busy is not None or state.position is None or now_ns < state.not_before_ns:
        return None
    node = state.node
    if node is None or now_ns >= state.seen_ns + _between_looks_ns(state, settings):
        return LookAtNode()
    if state.verdicts.standing is Standing.BAD:
        if node.takes_work:
            return Drain(_reason(state))
        if node.is_ours and is_outdated(node.reason, state.verdicts.faults):
            # An administrator may have taken the node over since the last look.
            return Drain(_reason(state)) if _is_fresh(state, now_ns) else LookAtNode()
    for job in state.jobs:
        if job not in state.requeued:
            return Requeue(job)
    resumed_ns = _resume_ns(state, settings)
    if resumed_ns is not None and now_ns >= resumed_ns:
        return Resume() if _is_fresh(state, now_ns) else LookAtNode()
    if state.position != state.acknowledged:
        return Acknowledge(state.position)
    return _annotation(state, node)


def _annotation(state: SlurmState, node: Node) -> Annotate | None:
    """The comment that the node is to have, if it has another one of ours."""
    if state.verdicts.standing is Standing.UNKNOWN or not is_own_comment(node.comment):
        return None
    is_explained = state.verdicts.standing is Standing.BAD and node.is_ours
    wanted = comment(state.verdicts.faults) if is_explained else ""
    # Our drain goes on for a while after the node is well: its comment still explains the reason.
    if wanted == node.comment or (not is_explained and node.is_ours):
        return None
    return Annotate(wanted)


def _is_fresh(state: SlurmState, now_ns: int) -> bool:
    return now_ns - state.seen_ns <= FRESH_NS


def _reason(state: SlurmState) -> str:
    return reason(state.verdicts.faults, state.bad_seq)


def _between_looks_ns(state: SlurmState, settings: SlurmSettings) -> int:
    is_wrong = state.verdicts.standing is Standing.BAD or (state.node is not None and state.node.is_ours)
    return settings.look_each_ns * (1 if is_wrong else IDLE_LOOKS)


def _resume_ns(state: SlurmState, settings: SlurmSettings) -> int | None:
    """When a drain of ours is to end; None where there is none, or the node is not well."""
    if state.well_since_ns is None or state.node is None or not state.node.is_ours:
        return None
    return state.well_since_ns + settings.resume_after_ns
