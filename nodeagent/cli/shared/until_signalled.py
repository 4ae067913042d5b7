"""How a command that follows ends: by SIGTERM or Ctrl-C, in order."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


async def until_signalled(work: Coroutine[Any, Any, None]) -> int:
    """Which signal ended it, 0 for none. A second one ends it at once."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    came = 0

    def end(number: int) -> None:
        nonlocal came
        came = number
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end, number)
    with suppress(asyncio.CancelledError):
        await task
    return came
