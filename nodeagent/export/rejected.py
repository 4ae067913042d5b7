"""The file of rejected records: JSON lines, bounded, on the disk before the next record is sent.

Where it is full or cannot be written it takes nothing more: then the export waits, and reports that.
"""

import json
import logging
import os
from pathlib import Path
from typing import Final

from nodeagent.export.records import ExportRecord

LARGEST_BYTES: Final = 64 << 20

_log = logging.getLogger(__name__)


class RejectedRecords:
    """``path`` need not be there yet."""

    def __init__(self, path: Path, largest_bytes: int = LARGEST_BYTES) -> None:
        self._path = path
        self._largest_bytes = largest_bytes
        self._problem = ""

    def add(self, record: ExportRecord, reason: str) -> bool:
        """False where there is no place for it. After a crash a record may be there twice."""
        line = json.dumps({"reason": reason, **record.keys(), "data": record.data}) + "\n"
        try:
            with self._path.open("ab") as file:
                if file.tell() + len(line) > self._largest_bytes:
                    return self._refuse(f"it would grow beyond {self._largest_bytes} bytes; move it away")
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            return self._refuse(str(error.strerror or error))
        self._problem = ""
        return True

    def _refuse(self, problem: str) -> bool:
        if problem != self._problem:
            self._problem = problem
            _log.error("--rejected %s: %s", self._path, problem)
        return False
