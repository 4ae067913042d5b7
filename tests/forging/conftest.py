import pytest

from nodeagent import wire
from nodeagent.drivers.kmsg.match import Matcher
from tests.forging.shipped import catalog


@pytest.fixture(scope="session")
def matcher() -> Matcher:
    return Matcher(wire.as_patterns(catalog().patterns))
