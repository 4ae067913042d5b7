"""Values of the catalog in words: durations and what closes a fault as tables say it, rules as people do."""

from nodeagent.core.catalog import (
    ClearOn,
    CounterRule,
    DurationRule,
    FrequencyRule,
    Pattern,
    RelationRule,
    ThresholdRule,
)
from nodeagent.core.model import CountedBy
from nodeagent.tables.rules import Rule

_UNITS = (
    (86_400_000_000_000, "d"),
    (3_600_000_000_000, "h"),
    (60_000_000_000, "m"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
)


def duration(nanoseconds: int) -> str:
    """``48h`` is ``2d``: the largest unit that says it exactly, and ``0s``."""
    for unit_ns, unit in _UNITS:
        if nanoseconds >= unit_ns and nanoseconds % unit_ns == 0:
            return f"{nanoseconds // unit_ns}{unit}"
    return f"{nanoseconds}ns" if nanoseconds else "0s"


def clear_on(value: ClearOn) -> list[str]:
    """As a row says it; the quiet time as a duration such as ``10m``."""
    words = [
        word
        for word, is_set in (
            ("recover", value.recover),
            ("reset", value.reset),
            ("reboot", value.reboot),
            ("job_end", value.job_end),
            ("operator", value.operator),
        )
        if is_set
    ]
    if value.quiet_ns is not None:
        words.append(duration(value.quiet_ns))
    return words


_COUNTED = {
    CountedBy.DEVICE: "times in",
    CountedBy.JOB: "times by one job in",
    CountedBy.PLACE: "jobs that failed at one and the same place of the device in",
}


def rule(value: Rule) -> str:
    """What the rule does, in one line; a pattern is its regular expression."""
    match value:
        case FrequencyRule():
            released = (
                "until a person releases it"
                if value.release_ns is None
                else f"released once it stayed away for {duration(value.release_ns)}"
            )
            least = "" if value.at_least is None else f", counted from {value.at_least} on"
            used = ", counted while it is in use" if value.in_use else ""
            times = (
                f"{value.times} {_COUNTED[value.counted_by]} {duration(value.time_window_ns)}{least}{used}"
            )
            return f"{times}: {value.level}, {released}"
        case DurationRule():
            return (
                f"there for longer than {duration(value.fault_timeout_ns)}: {value.level};"
                f" over once gone for longer than {duration(value.recover_timeout_ns)}"
            )
        case ThresholdRule():
            return (
                f"raised by {value.metric} above {value.above:g} for {duration(value.for_ns)},"
                f" over below {value.clear_below:g}"
            )
        case CounterRule():
            return f"raised by {value.metric} growing by {value.increase} in {duration(value.time_window_ns)}"
        case RelationRule():
            level = "" if value.level is None else f" {value.level}"
            return (
                f"{value.code} within {duration(value.within_ns)} of {', '.join(value.with_codes)}"
                f" on the same {value.same}: {value.then}{level}"
            )
        case Pattern():
            return value.regex
        case _:
            raise TypeError(value)
