"""From lines to inputs of the core, and from what the core holds to lines.

It checks numbers and texts: whatever a supervisor sends, what goes on is what stores, events and terminals
take.
"""

from typing import Final

from nodeagent.api import request_fields
from nodeagent.api.jobs import limits as bounds
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.model import JobEnded, JobPolicy, JobView, RunReported, RunReportKind, View, Wanted
from nodeagent.job import lines
from nodeagent.job.model import RunReport, RunRequest, Wish
from nodeagent.system.processes import printable

_MOST: Final = 2**53
_MOST_RUNS: Final = 2**31 - 1
"""The greatest number of a run in the store and in the API."""

_MOST_SECONDS: Final = 2**31 - 1


def check(begin: lines.JobBegin) -> None:
    """Raises ``Refusal``."""
    request_fields.word("kind", begin.kind)
    if begin.strategy:
        request_fields.word("strategy", begin.strategy)
    _number("run", begin.run, _MOST_RUNS)


def policy(begin: lines.JobBegin) -> JobPolicy:
    return JobPolicy(
        in_place=begin.in_place,
        yields=begin.yields,
        reschedules=begin.reschedules,
        strategy=begin.strategy,
    )


def report(job: str, line: RunReport) -> RunReported:
    """Raises ``Refusal``. Texts are cut, not refused: they would be sent again and again."""
    return RunReported(
        job=job,
        number=_number("number", line.number, _MOST),
        run=_number("run", line.run, _MOST_RUNS),
        what=RunReportKind(line.what.value),
        why=_text(line.why, bounds.MAX_WHY_CHARACTERS),
        status=_status(line.status),
        evidence=_evidence(line),
    )


def bye(job: str, line: lines.Bye) -> JobEnded:
    """Raises ``Refusal``."""
    status = _status(line.status)
    why = _text(line.why, bounds.MAX_WHY_CHARACTERS)
    return JobEnded(job=job, why=why or f"its supervisor has left with status {status}", status=status)


def limits(line: lines.AskChips) -> lines.LearntLimits:
    """Raises ``Refusal``."""
    for each in (line.limits.step_s, line.limits.start_s):
        if each is not None and not 0 <= each <= _MOST_SECONDS:
            raise Refusal(Status.INVALID_ARGUMENT, f"limits: seconds from 0 to {_MOST_SECONDS} are needed")
    return line.limits


def want(view: View, job: JobView, wanted: Wanted) -> RunRequest:
    chip = next((each.name for each in view.devices if each.id == job.device_id), "")
    return RunRequest(
        wish=Wish(wanted.value),
        run=job.run,
        why=job.why,
        chip=chip,
        code=job.code,
        isolated=job.isolated,
        handling=job.handling,
        by_operator=job.by_operator,
        handling_chip=job.handling_device,
        handling_code=job.handling_code,
        sub_health=job.sub_health,
    )


def _number(field: str, value: int, most: int) -> int:
    if not 1 <= value <= most:
        raise Refusal(Status.INVALID_ARGUMENT, f"{field}: a whole number from 1 to {most} is needed")
    return value


def _status(value: int | None) -> int | None:
    if value is not None and not -_MOST_RUNS <= value <= _MOST_RUNS:
        raise Refusal(Status.INVALID_ARGUMENT, "status: an exit status is needed")
    return value


def _evidence(line: RunReport) -> dict[str, str]:
    most_characters = bounds.MAX_EVIDENCE_CHARACTERS.get(RunReportKind(line.what.value))
    if most_characters is None:
        return {}
    entries = list(line.evidence.items())[: bounds.MAX_EVIDENCE]
    return {
        _text(key, request_fields.MAX_WORD_CHARACTERS): _text(value, most_characters)
        for key, value in entries
    }


def _text(text: str, most_characters: int) -> str:
    """Whatever it is, on one line, without what no store or terminal takes."""
    return printable(text[:most_characters])
