"""Times as people and programs read them. Wall time in, RFC 3339 in UTC out; no clock is read here."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp


def rfc3339(stamp: Timestamp) -> str:
    """With microseconds and Z: ``2026-01-02T03:04:05.678901Z``."""
    whole = datetime.fromtimestamp(stamp.seconds, UTC).replace(tzinfo=None)
    return f"{whole.isoformat()}.{stamp.nanos // 1000:06d}Z"


def in_short(stamp: Timestamp, now: Timestamp) -> str:
    """The time of day where that is the same day in UTC, else the day: for a narrow column."""
    day, _, time = rfc3339(stamp).partition("T")
    return f"{time[:8]}Z" if rfc3339(now).startswith(day) else day


def for_people(stamp: Timestamp) -> str:
    """With milliseconds, as lines of text show it."""
    return rfc3339(stamp)[:-4] + "Z"
