"""A file of the journal itself: read by systemd's own journalctl, as the kernel's entries in export form."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nodeagent.replay.packing import Peeked, Program

MAGIC: Final = b"LPKSHHRH"
_BY_KERNEL: Final = "_TRANSPORT=kernel"
_INSTEAD: Final = "a file of the journal itself: replay what journalctl -o export makes of it"


@contextmanager
def exported(path: Path) -> Iterator[Peeked]:
    """Raises PackedError where journalctl is not installed; reading raises it where that cannot read it."""
    command = [
        "journalctl",
        "--quiet",
        "--no-pager",
        "--output=export",
        f"--file={path}",
        "_TRANSPORT=kernel",
    ]
    program = Program(command, _INSTEAD)
    try:
        yield Peeked(program)
    finally:
        program.close()
