"""The JSON forms: what ``-o json`` shows of an event, a device, a condition. Others read these fields.

Each form is a plain dict made from the API's message, whether the message came from the daemon or
was made by a replay. A field that has nothing to say is "" or null; none is ever left out.
"""

from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.times import rfc3339
from nodeagent.outlets import enums
from nodeagent.outlets.pb import control_service_pb2, fault_service_pb2, types_pb2

Form = dict[str, Any]


def event(told: types_pb2.Event) -> Form:
    """The one form of an event. ``seq`` is 0 in a replay; ``condition_level`` may be null."""
    return {
        "seq": told.seq,
        "at": rfc3339(told.at),
        "kind": _word(enums.EVENT_KIND_OF, told.kind),
        "code": told.code,
        "name": told.name,
        "device": told.device,
        "level": _word(enums.LEVEL_OF, told.level),
        "condition_level": _word(enums.LEVEL_OF, told.condition_level),
        "verdict": _word(enums.VERDICT_OF, told.verdict),
        "handling": _word(enums.HANDLING_OF, told.handling),
        "condition_id": told.condition_id,
        "user_induced": told.user_induced,
        "evidence": dict(sorted(told.evidence.items())),
        "reasons": [reason(each) for each in told.reasons],
        "why": told.why,
        "rule": told.rule,
        "source": told.source,
        "count": told.count,
        "device_id": told.device_id,
        "device_kind": _word(enums.KIND_OF, told.device_kind),
        "subhealthy": told.subhealthy,
        "observed": told.observed,
        "unknown": told.unknown,
        "injected": told.injected,
        "userspace": told.userspace,
    }


def reason(told: types_pb2.Reason) -> Form:
    return {
        "kind": _word(enums.REASON_KIND_OF, told.kind),
        "id": told.id,
        "code": told.code,
        "level": _word(enums.LEVEL_OF, told.level),
        "text": told.text,
    }


def device(told: types_pb2.Device) -> Form:
    return {
        "name": told.name,
        "id": told.id,
        "kind": _word(enums.KIND_OF, told.kind),
        "vendor": told.vendor,
        "level": _word(enums.LEVEL_OF, told.level),
        "verdict": _word(enums.VERDICT_OF, told.verdict),
        "handling": _word(enums.HANDLING_OF, told.handling),
        "subhealthy": told.subhealthy,
        "observed": told.observed,
        "observed_at": _time(told.observed_at),
        "reasons": [reason(each) for each in told.reasons],
        "attributes": dict(sorted(told.attributes.items())),
        "claims": [{"job": each.job, "kind": each.kind} for each in told.claims],
        "holders": [_holder(each) for each in told.holders.holders] if told.HasField("holders") else None,
    }


def _holder(told: types_pb2.Holder) -> Form:
    return {"pid": told.pid, "start_time": told.start_time, "command": told.command, "job": told.job}


def condition(told: types_pb2.Condition) -> Form:
    return {
        "id": told.id,
        "code": told.code,
        "name": told.name,
        "device": told.device,
        "device_id": told.device_id,
        "source": told.source,
        "level": _word(enums.LEVEL_OF, told.level),
        "base_level": _word(enums.LEVEL_OF, told.base_level),
        "opened_at": _time(told.opened_at),
        "last_at": _time(told.last_at),
        "count": told.count,
        "user_induced": told.user_induced,
        "unknown": told.unknown,
        "injected": told.injected,
        "affects_verdict": told.affects_verdict,
        "evidence": dict(sorted(told.evidence.items())),
    }


def promotion(told: types_pb2.Promotion) -> Form:
    return {
        "id": told.id,
        "rule": told.rule,
        "code": told.code,
        "name": told.name,
        "device": told.device,
        "device_id": told.device_id,
        "level": _word(enums.LEVEL_OF, told.level),
        "fired_at": _time(told.fired_at),
        "effective": told.effective,
        "occurrences": [rfc3339(each) for each in told.occurrences],
    }


def hold(told: types_pb2.Hold) -> Form:
    return {
        "id": told.id,
        "device": told.device,
        "device_id": told.device_id,
        "kind": _word(enums.HOLD_KIND_OF, told.kind),
        "owner": told.owner,
        "set_by": told.set_by,
        "reason": told.reason,
        "since": _time(told.since),
        "until": _time(told.until),
    }


def action(told: types_pb2.Reset) -> Form:
    """An action that goes on or ended of late; ``result`` is "" until it has ended."""
    return {
        "id": told.id,
        "kind": "reset",
        "devices": list(told.devices),
        "device_ids": list(told.device_ids),
        "mode": _word(enums.RESET_MODE_OF, told.mode),
        "stage": _word(enums.RESET_STAGE_OF, told.stage),
        "codes": list(told.codes),
        "condition_ids": list(told.condition_ids),
        "who": told.who,
        "reason": told.reason,
        "attempt": told.attempt,
        "approved": told.approved,
        "blocked_by": list(told.blocked_by),
        "proposed_at": _time(told.proposed_at),
        "due_at": _time(told.due_at),
        "started_at": _time(told.started_at),
        "ended_at": _time(told.ended_at),
        "verified": list(told.verified),
        "result": told.result,
        "report": told.report,
    }


def plan(told: control_service_pb2.ResetPlan) -> Form:
    """What a reset would do. ``refused`` is "" where it would begin, ``after`` null where others decide."""
    return {
        "devices": list(told.devices),
        "mode": _word(enums.RESET_MODE_OF, told.mode),
        "refused": told.refused,
        "blocked_by": list(told.blocked_by),
        "used": [{"device": each.device, "resets": each.resets, "limit": each.limit} for each in told.used],
        "window": _length(told.window),
        "steps": [
            {"after": _length(each.after) if each.HasField("after") else None, "what": each.what}
            for each in told.steps
        ],
    }


def audit_entry(told: control_service_pb2.AuditEntry) -> Form:
    return {
        "number": told.number,
        "at": rfc3339(told.at),
        "who": told.who,
        "what": told.what,
        "target": told.target,
        "result": told.result,
    }


def consumer(told: fault_service_pb2.Consumer) -> Form:
    return {
        "name": told.name,
        "owner": told.owner,
        "seq": told.seq,
        "lag": told.lag,
        "acked_at": rfc3339(told.acked_at),
    }


def source(told: types_pb2.Source) -> Form:
    return {
        "name": told.name,
        "observing": told.observing,
        "required": told.required,
        "lost_at": _time(told.lost_at),
        "reason": told.reason,
        "device_id": told.device_id,
    }


def explanation(told: fault_service_pb2.CodeExplanation) -> Form:
    """What the tables say of a code; ``known`` is false where no row covers it."""
    return {
        "code": told.code,
        "kind": _word(enums.KIND_OF, told.kind),
        "vendor": told.vendor,
        "name": told.name,
        "level": _word(enums.LEVEL_OF, told.level),
        "user_induced": told.user_induced,
        "clear_on": list(told.clear_on),
        "description": told.description,
        "action": told.action,
        "rules": list(told.rules),
        "file": told.file,
        "known": told.known,
        "family": told.family,
        "affects": told.affects,
        "recovery": told.recovery,
        "modes": {each.mode: [phase(one) for one in each.phases] for each in told.modes},
        "rule_details": [
            {"id": each.id, "kind": each.kind, "text": each.text, "file": each.file}
            for each in told.rule_details
        ],
        "level_source": told.level_source,
        "level_reason": told.level_reason,
    }


def phase(told: fault_service_pb2.Phase) -> Form:
    """``duration`` is null where it holds as long as the fault stands."""
    return {
        "duration": _length(told.duration) if told.HasField("duration") else None,
        "verdict": _word(enums.VERDICT_OF, told.verdict),
        "handling": _word(enums.HANDLING_OF, told.handling),
    }


def advice(told: fault_service_pb2.Contribution) -> str:
    """What a person should do. What a rule promoted is not over with the fault that it counted."""
    if told.HasField("promotion"):
        device = told.promotion.device
        return f"It repeats: have {device} examined, or replaced, before you release it."
    return told.explanation.action


def contribution(told: fault_service_pb2.Contribution) -> Form:
    """One reason of a verdict and what stands behind it; null for what it is not."""
    return {
        "advice": advice(told),
        "reason": reason(told.reason),
        "condition": condition(told.condition) if told.HasField("condition") else None,
        "promotion": promotion(told.promotion) if told.HasField("promotion") else None,
        "hold": hold(told.hold) if told.HasField("hold") else None,
        "source": source(told.source) if told.HasField("source") else None,
        "explanation": explanation(told.explanation) if told.HasField("explanation") else None,
        "events": [event(each) for each in told.events],
    }


def _word(words: dict[Any, Any], number: int) -> str | None:
    """The word of an enum's number; null for one that is not set or that this version does not know."""
    word = words.get(number)
    return None if word is None else str(word)


def _length(told: Duration) -> str:
    return f"{told.ToNanoseconds() / 1e9:g}s"


def _time(stamp: Timestamp) -> str | None:
    """Null where it was not set."""
    return rfc3339(stamp) if stamp.seconds or stamp.nanos else None
