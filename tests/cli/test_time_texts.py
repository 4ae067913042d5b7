"""Times in the words of RFC 3339."""

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.shared.texts import for_people, in_short, rfc3339

NOON = 1_767_355_445


@pytest.mark.parametrize(
    ("seconds", "nanos", "expected"),
    [
        (NOON, 678_901_234, "2026-01-02T12:04:05.678901Z"),
        (1 << 62, 0, "9999-12-31T23:59:59.000000Z"),
        (-(1 << 62), -5, "0001-01-01T00:00:00.000000Z"),
        (0, 2_000_000_000, "1970-01-01T00:00:00.999999Z"),
    ],
)
def test_a_time_has_one_form_and_one_that_no_calendar_has_is_the_nearest(
    seconds: int, nanos: int, expected: str
) -> None:
    assert rfc3339(Timestamp(seconds=seconds, nanos=nanos)) == expected


def test_people_read_milliseconds_and_in_a_column_the_time_of_today() -> None:
    now = Timestamp(seconds=NOON)
    assert for_people(now) == "2026-01-02T12:04:05.000Z"
    assert in_short(now, Timestamp(seconds=NOON + 60)) == "12:04:05Z"
    assert in_short(now, Timestamp(seconds=NOON + 86_400)) == "2026-01-02"
