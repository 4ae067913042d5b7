"""Waits for what nobody announces, each with a limit of its own. It judges no time that passed."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, Final, TypeVar

T = TypeVar("T")

WAIT_LIMIT_S: Final = 90.0
"""Longer than anything takes on a machine that is shared; who waits so long waits in vain."""


async def until(
    found: Callable[[], T], what: str = "", limit_s: float = WAIT_LIMIT_S, each_s: float = 0.01
) -> T:
    """What is found at last, looked for each ``each_s``: less often where that starts a process. Raises
    AssertionError after the limit.
    """
    try:
        async with asyncio.timeout(limit_s):
            while not (result := found()):  # noqa: ASYNC110 # that is what it is for
                await asyncio.sleep(each_s)
            return result
    except TimeoutError:
        raise AssertionError(f"never came: {what or found}") from None


def wait_until(
    found: Callable[[], T], what: str = "", limit_s: float = WAIT_LIMIT_S, each_s: float = 0.01
) -> T:
    """As ``until``, where there is no loop."""
    end_s = time.monotonic() + limit_s
    while not (result := found()):
        assert time.monotonic() < end_s, f"never came: {what or found}"
        time.sleep(each_s)
    return result


class Lines:
    """The lines that a process prints, read as they come."""

    def __init__(self, stream: IO[str]) -> None:
        self._come: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def __iter__(self) -> Iterator[str]:
        return iter(self.readline, "")

    def readline(self, limit_s: float = WAIT_LIMIT_S) -> str:
        """The next, "" at the end. Raises AssertionError after the limit."""
        try:
            line = self._come.get(timeout=limit_s)
        except queue.Empty:
            raise AssertionError(f"no line came for {limit_s:.0f} s") from None
        if not line:
            self._come.put("")
        return line

    def until(self, words: str, limit_s: float = WAIT_LIMIT_S) -> str:
        """The first line with these words. Raises AssertionError after the limit, or where they end."""
        end_s = time.monotonic() + limit_s
        seen: list[str] = []
        while words not in (line := self.readline(max(0.0, end_s - time.monotonic()))):
            seen.append(line)
            assert line, f"it ended without a line with {words!r}, after {''.join(seen)}"
        return line

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._come.put(line)
        self._come.put("")
