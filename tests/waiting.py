"""Waits for what nobody tells, each with a limit of its own. It judges no time that passed."""

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

WAIT_LIMIT_S: Final = 90.0
"""Longer than anything takes on a machine that is shared; who waits so long waits in vain."""


async def until(found: Callable[[], T], what: str = "", limit_s: float = WAIT_LIMIT_S) -> T:
    """What is found at last. Raises AssertionError after the limit."""
    try:
        async with asyncio.timeout(limit_s):
            while not (result := found()):  # noqa: ASYNC110 # that is what it is for
                await asyncio.sleep(0.01)
            return result
    except TimeoutError:
        raise AssertionError(f"never came: {what or found}") from None


def wait_until(found: Callable[[], T], what: str = "", limit_s: float = WAIT_LIMIT_S) -> T:
    """As ``until``, where there is no loop."""
    end_s = time.monotonic() + limit_s
    while not (result := found()):
        assert time.monotonic() < end_s, f"never came: {what or found}"
        time.sleep(0.01)
    return result
