"""What the tests of the NVIDIA driver share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.nvidia.bench import GpuNode, Judge
from tests.emulator.nvml.conftest import Opened, OpenNode, describe_node, open_node

__all__ = ["describe_node", "open_node"]


@pytest.fixture
def h100(tmp_path: Path) -> Iterator[GpuNode]:
    """Four of them; all that was done to calls ends with the test."""
    node = GpuNode(tmp_path, "4xH100")
    with node.node:
        yield node


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def opened(open_node: OpenNode) -> Opened:
    """Two H100 that the test's own process has open."""
    return open_node("2xH100")
