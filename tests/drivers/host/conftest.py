from pathlib import Path

import pytest

from tests.drivers.host.node_tree import NodeTree


@pytest.fixture
def node(tmp_path: Path) -> NodeTree:
    return NodeTree(tmp_path / "node")
