"""What the API sends, as text for people: times, events, devices, jobs, and a node in one line.

In a pipe an event is one line, on a terminal one or two. A time is in UTC in a pipe; on a terminal it is in
the zone of this machine and has its age. ``present`` alone reads the clock. Nothing is judged.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.shared.output import coloured, on_terminal, width, wrapped, write
from nodeagent.cli.shared.printable import printable
from nodeagent.core.model import Handling, Verdict
from nodeagent.core.state.names import natural
from nodeagent.messages import enums
from nodeagent.messages.pb import types_pb2

_FIRST_S: Final = -62_135_596_800
"""0001-01-01T00:00:00Z: google/protobuf/timestamp.proto allows no earlier time."""

_LAST_S: Final = 253_402_300_799
"""9999-12-31T23:59:59Z."""

_STEPS: Final = (("started_after_s", "started"), ("ended_after_s", "ended"))
"""When a reset reached a step, counted from its proposal: the key in an event's evidence, and the step."""

_OF_ACTIONS: Final = frozenset(
    (
        types_pb2.EVENT_KIND_ACTION_PROPOSED,
        types_pb2.EVENT_KIND_ACTION_STARTED,
        types_pb2.EVENT_KIND_ACTION_FINISHED,
    )
)
_KIND_WIDTH: Final = 15
_INDENT: Final = " " * 4

CLAIMED: Final = "claimed"
"""Shown in place of a stage for a job that only claims devices."""

_QUESTIONS: Final = "unanswered"
_CODES: Final = "unjudged"
"""Attributes of a device: see docs/attributes.md."""

ALLOW: Final = types_pb2.VERDICT_ALLOW

_STATES: Final[dict[types_pb2.Verdict, str]] = {
    types_pb2.VERDICT_ISOLATE: "isolated",
    types_pb2.VERDICT_NO_NEW_JOBS: "with no new jobs",
    types_pb2.VERDICT_UNKNOWN: "unknown",
}
"""Devices that take no work, by verdict, the worst first."""

_NODES: Final[dict[types_pb2.Verdict, str]] = {
    types_pb2.VERDICT_ISOLATE: "the node takes no work",
    types_pb2.VERDICT_NO_NEW_JOBS: "the node takes no new jobs",
}
_UNLISTED: Final = "chip"
_NODE_UNKNOWN: Final = "it is not known whether the node takes work"
_KIND_OF_NAME: Final = re.compile(r"([a-z]+)[0-9]+")
"""``npu3`` is an NPU, ``gpu0`` a GPU; a chip that is known by its address alone is one that no driver lists.
"""


def rfc3339(stamp: Timestamp) -> str:
    """With microseconds and Z: ``2026-01-02T03:04:05.678901Z``.

    A time that is outside of the calendar, as a broken node may send, becomes the nearest one that is inside.
    """
    whole = datetime.fromtimestamp(max(_FIRST_S, min(stamp.seconds, _LAST_S)), UTC).replace(tzinfo=None)
    return f"{whole.isoformat()}.{max(0, min(stamp.nanos, 999_999_999)) // 1000:06d}Z"


_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"))


def age(since: Timestamp, now: Timestamp) -> str:
    """How long it is between them, in whole units of the largest that fits: ``45 s``, ``3 min``, ``2 d``."""
    seconds = max(0, now.seconds - since.seconds)
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def named(devices: Iterable[str]) -> str:
    """The names in their order, neighbours as a range: ``npu0-2, npu4``."""
    ranges: list[list[str]] = []
    for name in sorted(devices, key=natural):
        if ranges and _next_name(ranges[-1][-1]) == name:
            ranges[-1].append(name)
        else:
            ranges.append([name])
    return ", ".join(
        f"{each[0]}-{each[-1].removeprefix(_stem(each[0]))}" if len(each) > 2 else ", ".join(each)
        for each in ranges
    )


def _stem(name: str) -> str:
    return name.rstrip("0123456789")


def _next_name(name: str) -> str:
    match = _KIND_OF_NAME.fullmatch(name)
    return f"{match[1]}{int(name[len(match[1]) :]) + 1}" if match else ""


def present() -> Timestamp:
    """The time by the clock of this machine."""
    stamp = Timestamp()
    stamp.FromNanoseconds(time.time_ns())
    return stamp


def in_utc(stamp: Timestamp) -> str:
    """With milliseconds: ``2026-01-02T03:04:05.678Z``."""
    return rfc3339(stamp)[:-4] + "Z"


def for_people(stamp: Timestamp, now: Timestamp | None = None) -> str:
    """As every text shows a time: ``14:59:35 CET (3 min ago)``; in a pipe in UTC. ``now``: by this clock."""
    return local_time(stamp, now or present()) if on_terminal() else in_utc(stamp)


def without_age(stamp: Timestamp) -> str:
    """The same for what stays on the screen, where an age would soon be wrong."""
    return local_time(stamp, present(), with_age=False) if on_terminal() else in_utc(stamp)


def local_time(stamp: Timestamp, now: Timestamp, zone: tzinfo | None = None, *, with_age: bool = True) -> str:
    """With the date where that is another one than of ``now``. ``zone``: that of this machine."""
    at, today = (
        datetime.fromtimestamp(max(0, min(each.seconds, _LAST_S)), UTC).astimezone(zone)
        for each in (stamp, now)
    )
    name = at.tzname() or f"{at:%z}"  # $TZ may have no name for it
    shown = f"{at:%H:%M:%S} {name}" if at.date() == today.date() else f"{at:%Y-%m-%d %H:%M:%S} {name}"
    if not with_age:
        return shown
    is_later = stamp.seconds > now.seconds
    return f"{shown} (in {age(now, stamp)})" if is_later else f"{shown} ({age(stamp, now)} ago)"


def write_event(
    event: types_pb2.Event, node: str = "", *, time_text: Callable[[Timestamp], str] = without_age
) -> None:
    """Time, kind, device, code; then what it is and what follows from it. ``node``: of which of many."""
    kind = enums.EVENT_KIND_OF.get(event.kind, "?")
    at = time_text(event.at)
    subject = [*filter(None, [node]), event.device, *filter(None, [event.code])]
    verdict = _verdict_of_event(event).split(" ")
    rest = _what_happened(event)
    plain = printable(" ".join([at, f"{kind:<{_KIND_WIDTH}}", *subject, *verdict, rest]).rstrip())
    if not on_terminal() or len(plain) <= width():
        write(at, coloured(kind, _KIND_WIDTH), *subject, *map(coloured, verdict), rest)
        return
    write(at, coloured(kind), *subject, *map(coloured, verdict))
    for line in wrapped(rest, _INDENT, _INDENT):
        write(line)


def _verdict_of_event(event: types_pb2.Event) -> str:
    verdict, handling = enums.VERDICT_OF.get(event.verdict), enums.HANDLING_OF.get(event.handling)
    return f"{verdict}" if handling in (None, "NONE") else f"{verdict} {handling}"


def _what_happened(event: types_pb2.Event) -> str:
    """The fault's name and level, why it is shown, and what a reader must know of it."""
    level = enums.LEVEL_OF.get(event.condition_level)
    fault = f"{event.name} ({level})" if level else event.name
    marks = [
        mark
        for mark, is_set in (
            ("user-induced", event.user_induced),
            ("unknown code", event.unknown),
            ("injected", event.injected),
            ("userspace", event.userspace),
            ("not observed", not event.observed),
            (f"{event.count} times", event.count > 1),
            (f"mode {event.evidence.get('mode', '?')}", event.kind in _OF_ACTIONS),
            ("once", event.kind in _OF_ACTIONS and "once" in event.evidence),
            (f"attempt {event.evidence.get('attempt', '?')}", _is_repeated(event)),
            *(
                (f"{what} after {event.evidence.get(key, '?')} s", key in event.evidence)
                for key, what in _STEPS
            ),
        )
        if is_set
    ]
    of = event.evidence.get("devices", "") if event.kind == types_pb2.EVENT_KIND_ACTION_FINISHED else ""
    report = event.evidence.get("report", "") if of else ""
    text = "; ".join(filter(None, (fault, f"reset of {of}" if of else "", event.why, report)))
    return f"{text} [{', '.join(marks)}]" if marks else text


def _is_repeated(event: types_pb2.Event) -> bool:
    return event.kind in _OF_ACTIONS and event.evidence.get("attempt", "1") != "1"


def level_of(device: types_pb2.Device, but: Container[str] = ()) -> str:
    """The level of its faults, "-" where it has none, but for those conditions."""
    faulty = any(reason.level and reason.id not in but for reason in device.reasons)
    return enum_text(enums.LEVEL_OF, device.level) if faulty else "-"


def enum_text(names: Mapping[Any, object], number: int) -> str:
    """The name of an enum's number, "-" where none is set."""
    return str(names.get(number, "-"))


def stage_of(job: types_pb2.Job) -> str:
    return enum_text(enums.JOB_STAGE_OF, job.stage) if job.stage else CLAIMED


def recommended(job: types_pb2.Job) -> str:
    return enum_text(enums.RECOMMENDATION_OF, job.recommended)


def devices_of(job: types_pb2.Job) -> str:
    return ", ".join(job.devices) or "no device"


def job_line(job: types_pb2.Job) -> str:
    """``job slurm:7.0: asked, run 1, on npu3: npu3 80E18005``, until when, and why."""
    parts = [stage_of(job)]
    if job.run:
        parts.append(f"run {job.run}")
    parts.append(f"on {devices_of(job)}" if job.devices else "on no device")
    if job.HasField("due_at") and job.stage != types_pb2.JOB_STAGE_ENDED:
        parts.append(f"until {for_people(job.due_at)} at the latest")
    why = f": {job.why}" if job.why else ""
    return f"job {job.name}: {', '.join(parts)}{why}"


def unanswered_lines(device: types_pb2.Device) -> Iterator[str]:
    """What the driver of a device does not answer, and which codes are not judged for that."""
    if codes := device.attributes.get(_CODES):
        yield f"not judged by {codes.replace(',', ', ')}: the driver does not answer"
    if questions := device.attributes.get(_QUESTIONS):
        yield f"not answered: {questions}"


def unanswered_line(device: types_pb2.Device) -> str:
    """The same in one line below a list, "" where there is nothing to report."""
    if codes := device.attributes.get(_CODES):
        return f"{device.name} is not judged by {codes.replace(',', ', ')}: nodeagent why {device.name}"
    if device.attributes.get(_QUESTIONS):
        return f"{device.name} does not answer all questions: nodeagent why {device.name}"
    return ""


def headline(node: types_pb2.Device, devices: Iterable[types_pb2.Device]) -> str:
    """``10 of 16 NPUs are well, 5 isolated, 1 unknown``: the state of a node in one line.

    The node itself comes first where it takes no work, then the chips of each sort, those with a fault first,
    and last the chips that no driver lists. It shows verdicts, not reasons.
    """
    others = sorted((each for each in devices if each.name != node.name), key=lambda each: natural(each.name))
    by_noun: dict[str, list[types_pb2.Device]] = {}
    for chip in others:
        if chip.kind == types_pb2.KIND_CHIP:
            by_noun.setdefault(noun(chip), []).append(chip)
    unlisted = by_noun.pop(_UNLISTED, [])
    rest = [device for device in others if device.kind != types_pb2.KIND_CHIP]
    worst_first = sorted(by_noun.items(), key=lambda each: all(chip.verdict == ALLOW for chip in each[1]))
    parts = [] if node.verdict == ALLOW else [f"{stance(node)}: {_NODES.get(node.verdict, _NODE_UNKNOWN)}"]
    parts += [_of_chips(what, each) for what, each in worst_first] or ["no chip is known"]
    parts += _not_working("other device", rest) + _not_working("unlisted chip", unlisted)
    return "; ".join(parts)


def stance(device: types_pb2.Device) -> str:
    """Verdict, and handling unless it is NONE."""
    verdict = enums.VERDICT_OF.get(device.verdict, Verdict.UNKNOWN)
    handling = enums.HANDLING_OF.get(device.handling, Handling.NONE)
    return str(verdict) if handling is Handling.NONE else f"{verdict}, {handling}"


def noun(chip: types_pb2.Device) -> str:
    """What sort of chip it is, by its name."""
    match = _KIND_OF_NAME.fullmatch(chip.name)
    return match[1].upper() if match else _UNLISTED


def is_unlisted(device: types_pb2.Device) -> bool:
    """Whether it is a chip that no driver lists."""
    return device.kind == types_pb2.KIND_CHIP and noun(device) == _UNLISTED


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _of_chips(what: str, chips: Sequence[types_pb2.Device]) -> str:
    well = sum(chip.verdict == ALLOW for chip in chips)
    healthy = f"{well} of {counted(len(chips), what)} {'is' if 1 in (well, len(chips)) else 'are'} well"
    return ", ".join((healthy, *_not_working("", chips)))


def _not_working(what: str, devices: Sequence[types_pb2.Device]) -> list[str]:
    """``5 isolated``, ``1 other device unknown``."""
    counts = Counter(device.verdict for device in devices if device.verdict != ALLOW)
    verdicts = [each for each in _STATES if counts[each]]
    return [f"{counted(counts[each], what) if what else counts[each]} {_STATES[each]}" for each in verdicts]
