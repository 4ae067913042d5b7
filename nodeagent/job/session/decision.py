"""What becomes of a job whose run has ended, or may not begin: one pure function over a table of rows.

The first row that fits decides. It gives the reason for another run here, or the exit status with which the
supervisor leaves, and what that costs. It knows no time and no process, and changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from nodeagent.job.model import (
    Counts,
    ExitStatus,
    FailureKind,
    KnownFailure,
    Policy,
    RunReason,
    RunRequest,
    Wish,
)
from nodeagent.job.role import SupervisorRole
from nodeagent.job.session.state import EndCause
from nodeagent.job.session.values import RunFailure, RunNotReady

PLACEMENTS_IN_ROW: Final = 3
"""A fourth failure in a row without a fault is the job's own: ModelArts, "Recovering a Training Job"."""

LONGEST_PAUSE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnding:
    """How a run has ended, or why the next may not begin.

    ``failure`` is None if the command never ran, or if it is unknown how it ended. ``blame`` is what the
    daemon wanted near the end of a run that failed by itself, None where it knows of no fault. ``wanted_for``
    is the daemon's reason for what it wants now.
    """

    cause: EndCause
    failure: RunFailure | None = None
    known: KnownFailure = field(default_factory=KnownFailure)
    signal: int | None = None
    progressed: bool = False
    blame: RunRequest | None = None
    not_ready: RunNotReady | None = None
    isolated: bool = False
    wanted_for: str = ""
    by_operator: bool = False
    sub_health: str = ""
    """The chip that works, and not well, with its code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDecision:
    """``status`` None: the command runs again here, because of ``next_why``, after ``pause_s``.

    ``counts`` are those after it. ``row`` names the row that decided, ``why`` is for people.
    """

    row: str
    why: str
    counts: Counts
    status: int | None = None
    next_why: RunReason = RunReason.FAILED
    pause_s: float = 0.0
    fault: bool = False
    """The daemon's request, or the state of the hardware, has decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingCase:
    """What a row looks at."""

    ending: RunEnding
    policy: Policy
    counts: Counts

    @property
    def role(self) -> SupervisorRole:
        return self.policy.role

    @property
    def failed(self) -> bool:
        """Whether the command failed by itself."""
        return self.ending.cause is EndCause.EXITED and own_status(self.ending.failure) != 0


Fits = Callable[[EndingCase], bool]
Decides = Callable[[EndingCase], RunDecision]


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """``is_fault``: it is for a request of the daemon, or for a failure of the hardware."""

    name: str
    fits: Fits
    decides: Decides
    is_fault: bool = False


def decide(ending: RunEnding, policy: Policy, counts: Counts) -> RunDecision:
    """The first row that fits. In a step of several nodes a rerun is one of all of them together."""
    case = EndingCase(ending=ending, policy=policy, counts=counts)
    row = next(each for each in ROWS if each.fits(case))
    decision = replace(row.decides(case), row=row.name, fault=row.is_fault)
    if decision.status is None and case.role.reruns_together:
        return replace(decision, status=ExitStatus.RESTART_TOGETHER.value)
    return decision


def own_status(failure: RunFailure | None) -> int:
    """As a shell gives it: 128 + N of a signal (POSIX, "Exit Status for Commands"; bash takes N itself)."""
    if failure is not None and failure.signal is not None:
        return 128 + failure.signal
    return 1 if failure is None or failure.status is None else failure.status


def _leave(status: int, why: str, counts: Counts) -> RunDecision:
    return RunDecision(row="", why=why, counts=counts, status=int(status))


def _again(next_why: RunReason, why: str, counts: Counts, pause_s: float = 0.0) -> RunDecision:
    return RunDecision(row="", why=why, counts=counts, next_why=next_why, pause_s=pause_s)


def _placed_anew(status: ExitStatus, why: str, case: EndingCase) -> RunDecision:
    """Costs a placement; the scheduler is not asked for one that the job does not have. In a step another
    node may take this one's place: what it costs is for who knows of the others.
    """
    policy, counts = case.policy, case.counts
    if not case.role.counts_placements:
        return _leave(status, why, counts)
    if policy.placements is not None and counts.placements >= policy.placements:
        return _leave(
            ExitStatus.GIVEN_UP, f"{why}; all {policy.placements} placements of the job are used", counts
        )
    return _leave(status, why, replace(counts, placements=counts.placements + 1))


# ---------------------------------------------------------------------- what fits


def _done(case: EndingCase) -> bool:
    return case.ending.cause is EndCause.EXITED and own_status(case.ending.failure) == 0


def _of_user(case: EndingCase) -> bool:
    return case.failed and case.ending.known.kind is FailureKind.USER and not case.ending.progressed


def _too_often(case: EndingCase) -> bool:
    """What is known to pass, or to be of the hardware, may well come again: its budget ends it."""
    is_unknown = case.ending.known.kind is FailureKind.UNKNOWN
    return (
        case.failed
        and not case.ending.progressed
        and is_unknown
        and _signed(case).same_errors >= case.policy.error_row
    )


def _has_retries(case: EndingCase) -> bool:
    return case.failed and case.counts.retries < case.policy.in_place_retries


def _may_be_placed(case: EndingCase) -> bool:
    policy, counts = case.policy, case.counts
    return (
        case.failed
        and policy.unconditional
        and policy.placements is not None
        and counts.placements < policy.placements
        and counts.placements_in_row < PLACEMENTS_IN_ROW
    )


def _may_hang(case: EndingCase) -> bool:
    return case.ending.cause is EndCause.SUSPENDED and case.counts.hangs < case.policy.hang_row


def _fault_ends_step(case: EndingCase) -> bool:
    """A step is ended everywhere once it has failed on one node: what is known here may be the reason."""
    ending = case.ending
    return (
        case.role.acts
        and not case.role.signal_ends_job
        and ending.cause is EndCause.SIGNALLED
        and ending.blame is not None
    )


def _by(cause: EndCause) -> Fits:
    return lambda case: case.ending.cause is cause


# ---------------------------------------------------------------------- what is decided


def _signalled(case: EndingCase) -> RunDecision:
    number = case.ending.signal or 0
    return _leave(128 + number, f"signal {number}", case.counts)


def _own(case: EndingCase) -> RunDecision:
    status = own_status(case.ending.failure)
    return _leave(status, "done" if status == 0 else f"the command ended with status {status}", case.counts)


def _healing(case: EndingCase) -> RunDecision:
    next_why = RunReason.ORDERED if case.ending.by_operator else RunReason.HEALED
    return _again(next_why, "it runs again as soon as the daemon allows it", case.counts)


def _sent_away(case: EndingCase) -> RunDecision:
    if case.ending.isolated:
        reason = f": {case.ending.wanted_for}" if case.ending.wanted_for else ""
        why = f"the node, or a chip of the job, is isolated{reason}"
        return _placed_anew(ExitStatus.RESCHEDULE_ISOLATED, why, case)
    return _placed_anew(ExitStatus.RESCHEDULE, "the job is to run elsewhere; the node is well", case)


def _sub_healthy(case: EndingCase) -> RunDecision:
    strategy = case.policy.sub_health.value
    why = f"{case.ending.sub_health} (sub-health), and the strategy of the job is {strategy}"
    return _placed_anew(ExitStatus.RESCHEDULE, why, case)


def _not_healed(case: EndingCase) -> RunDecision:
    why = f"the job was not allowed to run within {case.policy.heal_timeout_s:g} s"
    return _placed_anew(ExitStatus.RESCHEDULE_ISOLATED, why, case)


def _not_ready(case: EndingCase) -> RunDecision:
    """Storage that does not answer is no fault of the node as far as is known here: it costs a placement
    where the scheduler counts them.
    """
    waited = case.ending.not_ready
    is_of_chips = waited is not None and waited.is_of_chips
    why = f"what the run needs was not there within {case.policy.heal_timeout_s:g} s"
    status = ExitStatus.RESCHEDULE_ISOLATED if is_of_chips else ExitStatus.RESCHEDULE
    return _placed_anew(status, why if waited is None else f"{why}: {waited.why}", case)


def _blamed(case: EndingCase) -> RunDecision:
    """As the daemon's request is: away from here, or again here once it is healed."""
    blame = case.ending.blame
    assert blame is not None
    ending = replace(
        case.ending, by_operator=blame.by_operator, isolated=blame.isolated, wanted_for=blame.why
    )
    if blame.handling == "RESCHEDULE":
        ending = replace(ending, isolated=True)
    away = not blame.by_operator and (blame.wish is Wish.LEAVE or ending.isolated or not case.policy.in_place)
    return (_sent_away if away else _healing)(replace(case, ending=ending))


def _user_failure(case: EndingCase) -> RunDecision:
    return _leave(ExitStatus.GIVEN_UP, f"an error of the job itself: {case.ending.known.line}", case.counts)


def _same_failure(case: EndingCase) -> RunDecision:
    after = _signed(case)
    times = "twice" if after.same_errors == 2 else f"{after.same_errors} times in a row"
    why = f"the same failure {times} without progress: {case.ending.known.line}"
    return _leave(ExitStatus.GIVEN_UP, why, after)


def _retry(case: EndingCase) -> RunDecision:
    """1 s, 2 s, 4 s and so on, at most a minute."""
    pause_s = min(2.0 ** min(case.counts.retries, 10), LONGEST_PAUSE_S)
    after = replace(_signed(case), retries=case.counts.retries + 1)
    why = f"retry {after.retries} of {case.policy.in_place_retries} in {pause_s:g} s"
    return _again(RunReason.FAILED, why, after, pause_s)


def _placement(case: EndingCase) -> RunDecision:
    after = replace(
        _signed(case),
        placements=case.counts.placements + 1,
        placements_in_row=case.counts.placements_in_row + 1,
    )
    return _leave(ExitStatus.RESCHEDULE, f"placement {after.placements} of {case.policy.placements}", after)


def _otherwise(case: EndingCase) -> RunDecision:
    """A job with a budget that is spent is given up; one without a budget gets the command's own status."""
    if case.policy.in_place_retries > 0 or case.policy.unconditional:
        return _leave(ExitStatus.GIVEN_UP, "the job has no retry left", _signed(case))
    return _own(replace(case, counts=_signed(case)))


def _suspended(case: EndingCase) -> RunDecision:
    after = replace(case.counts, hangs=case.counts.hangs + 1)
    why = f"hang {after.hangs} of at most {case.policy.hang_row} in a row"
    return _again(RunReason.SUSPENDED, why, after)


def _suspended_again(case: EndingCase) -> RunDecision:
    why = f"it hung again after {case.counts.hangs} restarts in a row without progress"
    return _leave(ExitStatus.GIVEN_UP, why, case.counts)


def _unkillable(case: EndingCase) -> RunDecision:
    """The status must show that the node is not well, even if no placement is left."""
    used = 1 if case.role.counts_placements else 0
    after = replace(case.counts, placements=case.counts.placements + used)
    return _leave(ExitStatus.RESCHEDULE_ISOLATED, "processes of the job cannot be killed", after)


def _orphaned(case: EndingCase) -> RunDecision:
    return _again(RunReason.FAILED, "its supervisor ended before it", case.counts)


def _signed(case: EndingCase) -> Counts:
    """A failure without a signature is never the same as the next. Counts of an earlier version know of the
    signature alone: it came once at least.
    """
    counts, signature = case.counts, case.ending.known.signature
    if not signature:
        return replace(counts, signature="", same_errors=0)
    before = max(counts.same_errors, 1) if signature == counts.signature else 0
    return replace(counts, signature=signature, same_errors=before + 1)


ROWS: Final = (
    DecisionRow("unkillable", _by(EndCause.UNKILLABLE), _unkillable, is_fault=True),
    DecisionRow("a fault ends the step", _fault_ends_step, _blamed, is_fault=True),
    DecisionRow("the scheduler ends it", _by(EndCause.SIGNALLED), _signalled),
    DecisionRow("done", _done, _own),
    DecisionRow("asked to stop", _by(EndCause.ASKED), _healing, is_fault=True),
    DecisionRow("sent away", _by(EndCause.SENT_AWAY), _sent_away, is_fault=True),
    DecisionRow("a chip is sub-healthy", _by(EndCause.SUB_HEALTH), _sub_healthy, is_fault=True),
    DecisionRow("not healed", _by(EndCause.NOT_HEALED), _not_healed, is_fault=True),
    DecisionRow("not ready", _by(EndCause.NOT_READY), _not_ready, is_fault=True),
    DecisionRow("only watched", lambda case: case.failed and not case.role.acts, _own),
    DecisionRow(
        "a fault", lambda case: case.failed and case.ending.blame is not None, _blamed, is_fault=True
    ),
    DecisionRow("an error of the user", _of_user, _user_failure),
    DecisionRow("the same too often", _too_often, _same_failure),
    DecisionRow("retry here", _has_retries, _retry),
    DecisionRow("another placement", _may_be_placed, _placement),
    DecisionRow("failed", lambda case: case.failed, _otherwise),
    DecisionRow("suspended", _may_hang, _suspended),
    DecisionRow("suspended once more", _by(EndCause.SUSPENDED), _suspended_again),
    DecisionRow("orphaned", _by(EndCause.ORPHANED), _orphaned),
)
