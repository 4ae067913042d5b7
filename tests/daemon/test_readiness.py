"""What health says before anybody may rely on it."""

import asyncio
from pathlib import Path

import pytest

from tests.api.watching import watching
from tests.bench.shared.daemon import running


@pytest.mark.root
async def test_health_says_serving_only_once_the_kernel_log_was_read(kmsg_lock: None, tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        await asyncio.to_thread(daemon.serving)
        async with watching(daemon.socket) as stream:
            snapshot = await stream.snapshot()
    assert ("kmsg", True) in [(source.name, source.observing) for source in snapshot.sources]
