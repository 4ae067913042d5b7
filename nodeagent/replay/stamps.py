"""Times as logs and people write them, to nanoseconds of wall time. A time without a zone is taken as UTC.

It reads no clock: what a text leaves open (the year, the boot) comes as an argument.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

SECOND_NS: Final = 1_000_000_000
_UNIT_NS: Final = tuple(10 ** (9 - digits) for digits in range(10))
_SECONDS_KEPT: Final = 4096

_RFC3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?(?:([Zz])|([+-])(\d\d):?(\d\d))?"
)
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
_RIGHT: Final = 'must be an RFC 3339 time with its zone, such as "2026-01-02T03:04:05.678Z"'


def rfc3339_ns(text: object) -> int:
    """Strictly: a zone is needed. Raises ValueError saying what would be right."""
    found = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if found is None or not (found[4] or found[5]):
        raise ValueError(_RIGHT)
    try:
        at_ns = iso_ns(found)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{error}; {_RIGHT}") from None
    if at_ns < 0:
        raise ValueError("must not lie before 1970")
    return at_ns


def iso_ns(found: re.Match[str]) -> int:
    """The time of the groups date, time, fraction, Z, sign, hours, minutes. Raises ValueError for a day that
    never was.
    """
    date, clock, fraction, _, sign, hours, minutes = found.groups()[:7]
    at_ns = _utc_ns(f"{date}T{clock}") + fraction_ns(fraction or "")
    if not sign:
        return at_ns
    ahead_ns = _zone_ns(int(hours), int(minutes))
    return at_ns + ahead_ns if sign == "-" else at_ns - ahead_ns


def syslog_ns(month: str, day: int, clock: str, written_ns: int) -> int:
    """``Jan  2 15:04:05`` of a file last written at ``written_ns``: the latest such day not beyond it.

    Raises ValueError for a day that never was.
    """
    year, latest_ns = _latest(written_ns)
    at_ns = calendar_ns(year, month, day, clock)
    return at_ns if at_ns <= latest_ns else calendar_ns(year - 1, month, day, clock)


def calendar_ns(year: int, month: str, day: int, clock: str) -> int:
    """Raises ValueError for a day that never was."""
    if month not in _MONTHS:
        raise ValueError(f"{month} is no month")
    return _utc_ns(f"{year:04}-{_MONTHS[month]:02}-{day:02}T{clock}")


def fraction_ns(digits: str) -> int:
    """The fraction that the digits after the point mean."""
    return int(digits[:9]) * _UNIT_NS[len(digits[:9])] if digits else 0


@lru_cache(maxsize=_SECONDS_KEPT)
def _utc_ns(text: str) -> int:
    """A log has many lines in each second."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND_NS


@lru_cache(maxsize=1)
def _latest(written_ns: int) -> tuple[int, int]:
    """A day beyond the end of the file: its year, and that moment. Zones may lie a day apart."""
    latest = datetime.fromtimestamp(written_ns / SECOND_NS, UTC) + timedelta(days=1)
    return latest.year, int(latest.timestamp()) * SECOND_NS


def _zone_ns(hours: int, minutes: int) -> int:
    if hours > 23 or minutes > 59:
        raise ValueError(f"{hours:02}:{minutes:02} is no zone")
    return (hours * 3600 + minutes * 60) * SECOND_NS
