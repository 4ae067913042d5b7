"""One line of a signal file: ``{"at": ..., "source": ..., "device": ..., "code": ..., "assertion": ...}``.

With the source ``public`` a line may name the ``sender`` of a fault and its ``fault_id``, and when it began.
Strict: an unknown, missing or wrong field is reported with what would be right, and nothing is guessed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct

from nodeagent.core.faults.reported import MAX_AHEAD_NS
from nodeagent.core.model import PUBLIC, Assertion, Report, Signal
from nodeagent.replay.stamps import rfc3339_ns
from nodeagent.toml.fields import read_form

Time = Annotated[
    int,
    Meta(
        ge=0,
        le=2**63 - 1,
        description='an RFC 3339 time with its zone, such as "2026-01-02T03:04:05.678Z"',
        extra={"reads": rfc3339_ns},
    ),
]
Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        pattern="^[!-~]+$",
        description="text in quotes: 1 to 128 printable characters without spaces",
    ),
]
Count = Annotated[int, Meta(ge=1, le=2**53, description="a whole number from 1")]
Severity = Annotated[int, Meta(ge=0, le=3, description="a whole number from 0 to 3")]
Evidence = Annotated[dict[str, str], Meta(max_length=24, description="an object of at most 24 texts")]


class SignalForm(Struct, frozen=True, kw_only=True):
    """What a source reports. ``sender``, ``fault_id`` and ``began_at`` are of what another system found."""

    at: Time
    source: Name
    device: Name
    code: Name
    assertion: Assertion
    severity: Severity | None = None
    count: Count = 1
    evidence: Evidence = {}
    sender: Name | None = None
    fault_id: Name | None = None
    began_at: Time | None = None


class AdvanceForm(Struct, frozen=True, kw_only=True):
    """Only time passes."""

    at: Time
    advance: Annotated[bool, Meta(description="true")]


@dataclass(frozen=True, slots=True)
class Moment:
    """``signal`` None: only time passes."""

    at_ns: int
    signal: Signal | None = None


def read(data: dict[str, Any], report: Callable[[str, str], None]) -> Moment | None:
    """None after every wrong field was reported with its reason."""

    def report_path(path: tuple[str | int, ...], reason: str) -> None:
        report(".".join(map(str, path)), reason)

    if "advance" in data:
        advance = read_form(AdvanceForm, data, (), report_path)
        if advance is None:
            return None
        if not advance.advance:
            report("advance", "false: must be true; leave the line out otherwise")
        return Moment(advance.at)
    form = read_form(SignalForm, data, (), report_path)
    if form is None or not _is_whole(form, report):
        return None
    signal = Signal(
        source=form.source,
        device=form.device,
        code=form.code,
        assertion=form.assertion,
        severity=form.severity,
        count=form.count,
        first_ns=form.at,
        last_ns=form.at,
        evidence=form.evidence,
        report=_report_of(form),
    )
    return Moment(form.at, signal)


def _is_whole(form: SignalForm, report: Callable[[str, str], None]) -> bool:
    """Whether the keys of a report are all there, or none; each problem is reported."""
    given = [key for key in ("sender", "fault_id", "began_at") if getattr(form, key) is not None]
    if not given:
        return True
    if form.source != PUBLIC:
        report(given[0], f'only a line with the source "{PUBLIC}" may have it')
        return False
    missing = [key for key in ("sender", "fault_id") if key not in given]
    for key in missing:
        report(key, f"missing; it goes with {given[0]}")
    is_ahead = form.began_at is not None and form.began_at > form.at + MAX_AHEAD_NS
    if is_ahead:
        report("began_at", "more than 5 minutes later than at, so that a daemon would not take it")
    return not missing and not is_ahead


def _report_of(form: SignalForm) -> Report | None:
    if form.sender is None or form.fault_id is None:
        return None
    began_ns = form.at if form.began_at is None else form.began_at
    return Report(sender=form.sender, fault_id=form.fault_id, began_ms=began_ns // 1_000_000)
