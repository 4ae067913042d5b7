"""Streams of bytes: cut into lines of bounded length; and whether one goes to the systemd journal.

Nothing is read or written here.
"""

import os
from collections.abc import Mapping
from typing import Final


class LineSplitter:
    """Cuts a byte stream into lines; one that grows beyond the bound is dropped up to its end and counted."""

    def __init__(self, max_bytes: int) -> None:
        self.oversized = 0
        self._max_bytes = max_bytes
        self._begun = bytearray()
        self._dropping = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines completed by ``chunk``, without their newline."""
        *ended, rest = chunk.split(b"\n")
        lines = []
        for part in ended:
            self._add(part)
            if self._dropping:
                self.oversized += 1
            else:
                lines.append(bytes(self._begun))
            self._begun.clear()
            self._dropping = False
        self._add(rest)
        return lines

    def _add(self, part: bytes) -> None:
        if len(self._begun) + len(part) > self._max_bytes:
            self._dropping = True
            self._begun.clear()
        if not self._dropping:
            self._begun += part


STDERR: Final = 2


def runs_under_journal(environ: Mapping[str, str], descriptor: int = STDERR) -> bool:
    """Whether systemd has connected this descriptor to the journal (systemd.exec(5), JOURNAL_STREAM)."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
