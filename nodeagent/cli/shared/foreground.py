"""Commands that run until they are ended: their log on standard error, and their end by a signal.

The log is not the stream of events: what is reported of devices is never a log line.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from nodeagent.cli.shared.printable import printable
from nodeagent.system.streams import runs_under_journal

_PRIORITIES: Final = {logging.CRITICAL: 2, logging.ERROR: 3, logging.WARNING: 4, logging.INFO: 6}
_DEBUG: Final = 7


class PrintableFormatter(logging.Formatter):
    """All lines of a message or traceback but the first are indented: a quoted text cannot pass for a
    message.
    """

    def format(self, record: logging.LogRecord) -> str:
        first, *others = super().format(record).splitlines() or [""]
        return "\n".join(map(printable, (first, *(f"    {line}" for line in others))))


class JournalFormatter(logging.Formatter):
    """``<4>source: message``, as sd-daemon(3) has it; every line of a traceback gets the prefix too."""

    def format(self, record: logging.LogRecord) -> str:
        prefix = f"<{_PRIORITIES.get(record.levelno, _DEBUG)}>"
        return "\n".join(prefix + printable(line) for line in super().format(record).splitlines())


def begin_log() -> None:
    """Everything from INFO up is written from now on."""
    handler = logging.StreamHandler(sys.stderr)
    if runs_under_journal(os.environ):
        handler.setFormatter(JournalFormatter("%(name)s: %(message)s"))
    else:
        handler.setFormatter(PrintableFormatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


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
