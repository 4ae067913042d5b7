"""The daemon's own log, on standard error: with priorities for the journal, with the time for people.

It is not the stream of events: what is reported of devices is never a log line.
"""

import logging
import os
import sys
from typing import Final

from nodeagent.cli.shared.printable import printable
from nodeagent.system.streams import runs_under_journal

_PRIORITIES: Final = {logging.CRITICAL: 2, logging.ERROR: 3, logging.WARNING: 4, logging.INFO: 6}
_DEBUG: Final = 7


class PrintableFormatter(logging.Formatter):
    """With a line for each of a message or traceback, of which all but the first are indented: what a message
    quotes cannot pass for another one.
    """

    def format(self, record: logging.LogRecord) -> str:
        first, *others = super().format(record).splitlines() or [""]
        return "\n".join(map(printable, (first, *(f"    {line}" for line in others))))


class JournalFormatter(logging.Formatter):
    """``<4>source: message``, as sd-daemon(3) has it; every line of a traceback gets the prefix too."""

    def format(self, record: logging.LogRecord) -> str:
        prefix = f"<{_PRIORITIES.get(record.levelno, _DEBUG)}>"
        return "\n".join(prefix + printable(line) for line in super().format(record).splitlines())


def begin() -> None:
    """From here on everything from INFO up is written."""
    handler = logging.StreamHandler(sys.stderr)
    if runs_under_journal(os.environ):
        handler.setFormatter(JournalFormatter("%(name)s: %(message)s"))
    else:
        handler.setFormatter(PrintableFormatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
