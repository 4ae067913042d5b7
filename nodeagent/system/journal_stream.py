"""Whether what is written to a descriptor goes to the systemd journal. It writes nothing itself."""

import os
from collections.abc import Mapping
from typing import Final

STDERR: Final = 2


def runs_under_journal(environ: Mapping[str, str], descriptor: int = STDERR) -> bool:
    """Whether systemd has connected this descriptor to the journal (systemd.exec(5), JOURNAL_STREAM)."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
