"""Moments as people write them on the command line."""

from datetime import UTC, datetime

import click
import pytest

from nodeagent.cli.shared.options import moment

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOW_NS = int(NOW.timestamp()) * 10**9


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.5+01:00", "2026-01-02T02:04:05.500Z"),
        ("2026-01-02T03:04", "2026-01-02T03:04:00Z"),
        ("2026-01-02 03:04", "2026-01-02T03:04:00Z"),
        ("2026-01-02", "2026-01-02T00:00:00Z"),
        ("90m", "2026-01-02T01:34:05Z"),
        ("1d", "2026-01-01T03:04:05Z"),
        ("99999d", "1970-01-01T00:00:00Z"),
    ],
)
def test_a_time_is_in_utc_where_it_names_no_zone_and_a_length_is_ago(text: str, meant: str) -> None:
    assert moment(text, NOW_NS).ToJsonString() == meant


@pytest.mark.parametrize("text", ["", "yesterday", "5", "03:04", "2026-13-01"])
def test_what_is_no_time_is_refused_with_what_is_one(text: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        moment(text, NOW_NS)
    assert refused.value.message == (
        f"{text!r} is not a time: 2026-01-02T03:04:05Z, 2026-01-02, or how long ago: 90m"
    )
