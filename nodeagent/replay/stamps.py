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
_YEARS_TO_A_LEAP_DAY: Final = 8

_RFC3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?(?:([Zz])|([+-])(\d\d):?(\d\d))?"
)
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
    date, clock, fraction, _, sign, hours, minutes = found.groups()
    at_ns = utc_ns(f"{date}T{clock}") + fraction_ns(fraction)
    return at_ns - zone_ns(f"{sign}{hours}:{minutes}") if sign else at_ns


def latest_ns(month: int, day: int, clock: str, written_ns: int) -> int:
    """The latest such day that is not beyond the end of a file last written at ``written_ns``.

    Raises ValueError for a day that never was.
    """
    year, end_ns = _end(written_ns)
    for earlier in range(_YEARS_TO_A_LEAP_DAY + 1):
        try:
            at_ns = calendar_ns(year - earlier, month, day, clock)
        except ValueError:
            continue
        if at_ns <= end_ns:
            return at_ns
    raise ValueError(f"there was no {month:02}-{day:02} {clock}")


def nearest_ns(month: int, day: int, clock: str, near_ns: int) -> int:
    """The nearest such day. Raises ValueError for a day that never was."""
    year = datetime.fromtimestamp(near_ns / SECOND_NS, UTC).year
    found = []
    for other in range(year - _YEARS_TO_A_LEAP_DAY // 2, year + _YEARS_TO_A_LEAP_DAY // 2 + 1):
        try:
            found.append(calendar_ns(other, month, day, clock))
        except ValueError:
            continue
    if not found:
        raise ValueError(f"there was no {month:02}-{day:02} {clock}")
    return min(found, key=lambda at_ns: abs(at_ns - near_ns))


def calendar_ns(year: int, month: int, day: int, clock: str) -> int:
    """Raises ValueError for a day that never was."""
    return utc_ns(f"{year:04}-{month:02}-{day:02}T{clock}")


def fraction_ns(digits: str | None) -> int:
    """The fraction that the digits after the point mean, 9 at most."""
    return int(digits) * _UNIT_NS[len(digits)] if digits else 0


@lru_cache(maxsize=_SECONDS_KEPT)
def utc_ns(text: str) -> int:
    """A log has many lines in each second. Raises ValueError for a day that never was."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND_NS


@lru_cache(maxsize=1)
def _end(written_ns: int) -> tuple[int, int]:
    """A day beyond the end of the file: its year, and that moment. Zones may lie a day apart."""
    latest = datetime.fromtimestamp(written_ns / SECOND_NS, UTC) + timedelta(days=1)
    return latest.year, int(latest.timestamp()) * SECOND_NS


@lru_cache(maxsize=16)
def zone_ns(text: str) -> int:
    """How far ``+08:00`` is ahead of UTC. Raises ValueError for what is no zone."""
    hours, _, minutes = text[1:].partition(":")
    if int(hours) > 23 or int(minutes) > 59:
        raise ValueError(f"{text} is no zone")
    ahead_ns = (int(hours) * 3600 + int(minutes) * 60) * SECOND_NS
    return -ahead_ns if text[0] == "-" else ahead_ns
