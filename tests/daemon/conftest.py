"""What the daemon's tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.staged import release_fifo


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Path]:
    """The folder that tells the fake driver what to do. Whatever still hangs at the end is let go."""
    yield tmp_path
    for path in tmp_path.iterdir():
        if path.is_fifo():
            release_fifo(path)
