"""Times as logs and people write them, to nanoseconds of wall time. A time without a zone is taken as UTC.

It reads no clock: what a text leaves open (the year, the boot) comes as an argument.
"""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

SECOND_NS: Final = 1_000_000_000

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
    """Of groups date, time, fraction, Z, sign, hours, minutes. Raises ValueError for a day that never was."""
    date, clock, fraction, _, sign, hours, minutes = found.groups()[:7]
    zone = UTC
    if sign:
        ahead = timedelta(hours=int(hours), minutes=int(minutes))
        zone = timezone(-ahead if sign == "-" else ahead)
    moment = datetime.fromisoformat(f"{date}T{clock}").replace(tzinfo=zone)
    return _whole_ns(moment) + fraction_ns(fraction or "")


def syslog_ns(month: str, day: int, clock: str, fraction: str, written_ns: int) -> int:
    """``Jan  2 15:04:05`` of a file last written at ``written_ns``: the latest such day not beyond it.

    Raises ValueError for a day that never was.
    """
    written = datetime.fromtimestamp(written_ns / SECOND_NS, UTC) + timedelta(days=1)
    at_ns = calendar_ns(written.year, month, day, clock)
    if at_ns > _whole_ns(written):
        at_ns = calendar_ns(written.year - 1, month, day, clock)
    return at_ns + fraction_ns(fraction)


def calendar_ns(year: int, month: str, day: int, clock: str) -> int:
    """Raises ValueError for a day that never was."""
    if month not in _MONTHS:
        raise ValueError(f"{month} is no month")
    date = f"{year:04}-{_MONTHS[month]:02}-{day:02}"
    return _whole_ns(datetime.fromisoformat(f"{date}T{clock}").replace(tzinfo=UTC))


def fraction_ns(digits: str) -> int:
    """Of the digits after the point."""
    return int(digits[:9].ljust(9, "0")) if digits else 0


def _whole_ns(moment: datetime) -> int:
    return int(moment.timestamp()) * SECOND_NS
