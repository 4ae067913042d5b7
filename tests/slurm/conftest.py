"""What the stories with Slurm share: all of them need root, and three nodes are enough for most."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, cluster


@pytest.fixture
def three_nodes(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path / "slurm") as made:
        yield made
