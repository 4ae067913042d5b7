"""The commands of a scenario about jobs and resets, read from their words.

claim|unclaim DEVICE JOB
job JOB begins [in_place] [yields] [reschedules] [running] [chips=npu0,npu1] [run=1]
job JOB says WORD number=N run=N [status=1]
job JOB leaves [status=0]               without a status: its supervisor is dead
stop_job|rerun_job JOB
approve|refuse|reset DEVICE
result ID done|failed|refused|timed_out how the attempt of a reset went that runs
"""

from collections.abc import Sequence

from nodeagent.core.model import (
    NODE,
    ActionResult,
    ActionState,
    Claims,
    Input,
    JobBegun,
    JobEnded,
    JobPolicy,
    Operator,
    Peer,
    RunReported,
    RunReportKind,
)
from tests.scenarios.wording import options_of

VERBS = frozenset(
    {"claim", "unclaim", "job", "stop_job", "rerun_job", "approve", "refuse", "reset", "result"}
)


def read(words: Sequence[str]) -> Input:
    """Raises ValueError for a command that is none."""
    plain, options = options_of(list(words))
    match plain:
        case ["claim" | "unclaim" as verb, device, job]:
            return Claims(device=device, job=job, kind="training", claimed=verb == "claim")
        case ["job", job, "begins", *flags]:
            return _begins(job, set(flags), options)
        case ["job", job, "says", what]:
            return RunReported(
                job=job,
                number=int(options["number"]),
                run=int(options["run"]),
                what=RunReportKind(what),
                status=int(options["status"]) if "status" in options else None,
            )
        case ["job", job, "leaves"]:
            status = int(options["status"]) if "status" in options else None
            return JobEnded(job=job, why="its supervisor has left", status=status)
        case ["stop_job" | "rerun_job" as verb, job]:
            return Operator(who="alice", what=verb, device=NODE, only=job, reason="service")
        case ["approve" | "refuse" | "reset" as verb, device]:
            return Operator(who="alice", what=verb, device=device, reason="service")
        case ["result", action, how]:
            return ActionResult(action_id=action, state=ActionState(how))
    raise ValueError(f"no such command: {' '.join(words)}")


def _begins(job: str, flags: set[str], options: dict[str, str]) -> JobBegun:
    return JobBegun(
        job=job,
        kind="training",
        peer=Peer(pid=sum(map(ord, job)), start_time=1, uid=1000),
        run=int(options.get("run", "1")),
        is_running="running" in flags,
        devices=tuple(options["chips"].split(",")) if "chips" in options else (),
        policy=JobPolicy(
            in_place="in_place" in flags, yields="yields" in flags, reschedules="reschedules" in flags
        ),
    )
