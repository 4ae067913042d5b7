"""The clock by which workers are waited for: the event loop's own, which its time-outs go by too.

It is CLOCK_MONOTONIC (``BaseEventLoop.time`` of asyncio), but for a loop that plays its time.
"""

import asyncio


def now_s() -> float:
    """Only where an event loop runs."""
    return asyncio.get_running_loop().time()
