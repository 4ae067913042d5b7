from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.link.namespace import Namespace, namespace
from tests.drivers.link.tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "sys")


@pytest.fixture
def network() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


@pytest.fixture
def other_network() -> Iterator[Namespace]:
    with namespace() as made:
        yield made
