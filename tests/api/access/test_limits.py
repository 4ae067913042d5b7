"""The limits add up: all that clients may have together fits into what the unit gives the daemon."""

import configparser
from pathlib import Path

import pytest

from nodeagent.api.access import limits
from nodeagent.api.access.limits import Limit
from nodeagent.metrics.http import MAX_CONNECTIONS as METRICS_CONNECTIONS
from tests.api.access import limits_sum

UNIT = Path(__file__).parents[3] / "packaging" / "nodeagent.service"
ALL = [(name, value) for name, value in vars(limits).items() if isinstance(value, Limit)]

FOR_READERS_ALONE = (limits.PUBLIC_CONNECTIONS, limits.NODE_HEALTH_CONNECTIONS)
"""On these sockets nobody is an operator."""

DESCRIPTORS_OF_A_CONNECTION = 3
"""The client's, the relay's to the server, and the server's."""

OTHER_DESCRIPTORS = 1024
"""The store, workers, the loops, a log: with plenty to spare."""


def unit(key: str) -> str:
    """What the unit sets; some keys stand there more than once."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT)
    return parser["Service"][key]


def test_all_that_is_allowed_together_fits_into_the_units_memory() -> None:
    most = unit("MemoryMax")
    assert most.endswith("M")
    assert limits_sum.unit_bytes() < int(most.removesuffix("M")) * limits_sum.MIB


def test_all_connections_leave_descriptors_for_everything_else() -> None:
    connections = sum(limit.total for name, limit in ALL if name.endswith("CONNECTIONS"))
    taken = connections * DESCRIPTORS_OF_A_CONNECTION + METRICS_CONNECTIONS
    assert taken + OTHER_DESCRIPTORS < int(unit("LimitNOFILE"))


@pytest.mark.parametrize("limit", [limit for _, limit in ALL], ids=[name for name, _ in ALL])
def test_no_identity_can_take_what_others_need(limit: Limit) -> None:
    assert 0 < limit.each < limit.total - limit.kept
    assert limit.kept > 0 or limit in FOR_READERS_ALONE, "of what operators use too, some is kept for them"


def test_what_one_identity_may_have_fits_on_one_connection_and_into_its_line() -> None:
    assert limits.STREAMS.each <= limits.STREAMS_ON_CONNECTION
    assert limits.CALLS.each + limits.CALLS.line <= limits.STREAMS_ON_CONNECTION
    assert limits.STREAMS.each + limits.CALLS.each + limits.CALLS.line <= limits.OPEN_CALLS.each
    assert limits.ANSWER_BYTES.line >= limits.STREAMS.each + limits.CALLS.each + limits.CALLS.line
