"""Values of the catalog as tables write them: durations, and what closes a fault."""

from nodeagent.core.catalog.catalog import ClearOn

_UNITS = (
    (86_400_000_000_000, "d"),
    (3_600_000_000_000, "h"),
    (60_000_000_000, "m"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
)


def duration(nanoseconds: int) -> str:
    """``48h`` is ``2d``: the largest unit that gives it exactly, and ``0s``."""
    for unit_ns, unit in _UNITS:
        if nanoseconds >= unit_ns and nanoseconds % unit_ns == 0:
            return f"{nanoseconds // unit_ns}{unit}"
    return f"{nanoseconds}ns" if nanoseconds else "0s"


def clear_on(value: ClearOn) -> list[str]:
    """As a row writes it; the quiet time as a duration such as ``10m``."""
    causes = [
        cause
        for cause, is_set in (
            ("recover", value.recover),
            ("reset", value.reset),
            ("reboot", value.reboot),
            ("job_end", value.job_end),
            ("operator", value.operator),
        )
        if is_set
    ]
    if value.quiet_ns is not None:
        causes.append(duration(value.quiet_ns))
    return causes
