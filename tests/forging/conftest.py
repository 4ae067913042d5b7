import pytest

from nodeagent.drivers.kmsg.match import Matcher
from nodeagent.worker import protocol
from tests.forging.shipped import catalog


@pytest.fixture(scope="session")
def matcher() -> Matcher:
    return Matcher(protocol.as_told(catalog().patterns))
