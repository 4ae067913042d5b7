"""Times as people and programs read them. Wall time in, RFC 3339 in UTC out; no clock is read here.

A time that no calendar has, as a broken node may send, is the nearest that one has.
"""

from datetime import UTC, datetime
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

_FIRST_S: Final = -62_135_596_800
"""0001-01-01T00:00:00Z: google/protobuf/timestamp.proto allows no earlier time."""

_LAST_S: Final = 253_402_300_799
"""9999-12-31T23:59:59Z."""


def rfc3339(stamp: Timestamp) -> str:
    """With microseconds and Z: ``2026-01-02T03:04:05.678901Z``."""
    whole = datetime.fromtimestamp(max(_FIRST_S, min(stamp.seconds, _LAST_S)), UTC).replace(tzinfo=None)
    return f"{whole.isoformat()}.{max(0, min(stamp.nanos, 999_999_999)) // 1000:06d}Z"


def in_short(stamp: Timestamp, now: Timestamp) -> str:
    """The time of day where that is the same day in UTC, else the day: for a narrow column."""
    day, _, time = rfc3339(stamp).partition("T")
    return f"{time[:8]}Z" if rfc3339(now).startswith(day) else day


def for_people(stamp: Timestamp) -> str:
    """With milliseconds, as lines of text show it."""
    return rfc3339(stamp)[:-4] + "Z"
