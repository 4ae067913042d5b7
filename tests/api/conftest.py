"""A stage for each test, in a folder whose path is short and that other users may enter."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.api.certificates import Authority
from tests.api.stage import Stage


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="nodeagent-") as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


@pytest.fixture
async def stage(place: Path) -> AsyncIterator[Stage]:
    opened = Stage(place)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def authority(place: Path) -> Authority:
    folder = place / "certificates"
    folder.mkdir()
    return Authority(folder)
