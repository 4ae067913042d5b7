"""An emulated BMC, and who asks it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.drivers.bmc.ipmi import Bmc
from nodeagent.emulator.node import EmulatedNode

DEVICE = "/dev/ipmi0"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[EmulatedNode]:
    """With the BMC of a node with NPUs."""
    with EmulatedNode.create(tmp_path / "node", "1x910B") as made:
        yield made


@pytest.fixture
def bmc(node: EmulatedNode) -> Iterator[Bmc]:
    made = Bmc(DEVICE, str(node.ipmi))
    made.open()
    yield made
    made.close()
