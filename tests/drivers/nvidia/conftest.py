"""What the tests of the NVIDIA driver share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.nvidia.bench import GpuNode, Judge


@pytest.fixture
def h100(tmp_path: Path) -> Iterator[GpuNode]:
    """Four of them; all that was done to calls ends with the test."""
    node = GpuNode(tmp_path, "4xH100")
    with node.node:
        yield node


@pytest.fixture
def judge() -> Judge:
    return Judge()
