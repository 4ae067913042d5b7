import pytest

from nodeagent import wire
from nodeagent.drivers.kmsg.match import Matcher
from tests.shipped import shipped_catalog


@pytest.fixture(scope="session")
def matcher() -> Matcher:
    return Matcher(wire.as_patterns(shipped_catalog().patterns))
