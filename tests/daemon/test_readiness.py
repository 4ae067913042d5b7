"""What health says before anybody may rely on it."""

from pathlib import Path

import pytest

from tests.api.watching import watching
from tests.harness.daemon import Daemon
from tests.harness.kernel_log import KMSG


@pytest.mark.root
async def test_health_says_serving_only_once_the_kernel_log_was_read(kmsg_lock: None, tmp_path: Path) -> None:
    daemon = Daemon(folder=tmp_path, kernel_log=KMSG)
    try:
        await daemon.start()
        async with watching(daemon.socket) as stream:
            snapshot = await stream.snapshot()
    finally:
        await daemon.kill()
    assert ("kmsg", True) in [(source.name, source.observing) for source in snapshot.sources]
