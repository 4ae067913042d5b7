"""What the tests of the Ascend drivers share: emulated nodes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from nodeagent.emulator.node import EmulatedNode

Emulate = Callable[[str], EmulatedNode]


@pytest.fixture
def emulate(tmp_path: Path) -> Iterator[Emulate]:
    """Makes the node of a description; whatever hangs in it is let go at the end."""
    with ExitStack() as nodes:
        yield lambda description: nodes.enter_context(
            EmulatedNode.create(tmp_path / f"node-{description}", description)
        )


@pytest.fixture
def node(emulate: Emulate) -> EmulatedNode:
    return emulate("8x910B")


@pytest.fixture
def fabric(emulate: Emulate) -> EmulatedNode:
    """With switches that report their faults at once."""
    node = emulate("16xA3")
    node.set_node("fabric_poll_ms", 0)
    return node
