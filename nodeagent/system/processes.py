"""What the kernel says of a process: its command, its parent, when it began.

Of the command only its name is read: its arguments may hold secrets. No process is touched.
"""

from pathlib import Path
from typing import Final

MAX_READ_BYTES: Final = 64 * 1024

PARENT: Final = 1
USER: Final = 11
SYSTEM: Final = 12
START: Final = 19
"""Fields of ``stat`` behind the command: the parent's pid; in clock ticks, computed itself, by the kernel for
it, and its start since boot.
"""


def stat_of(folder: Path) -> tuple[str, list[str]]:
    """The command as it stands in the ``stat`` of a process or thread, and the fields behind it.

    Raises ``OSError``: ``ProcessLookupError`` or ``FileNotFoundError`` once it has ended.
    """
    head, _, tail = read(folder / "stat").rpartition(")")
    return head.partition("(")[2], tail.split()


def printable(command: str) -> str:
    """Whoever starts a process may choose its command."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in command)


def read(file: Path) -> str:
    """The text of a file of a process: bounded, and never a failure to decode. Raises ``OSError``."""
    with file.open("rb") as opened:
        return opened.read(MAX_READ_BYTES).decode("utf-8", "replace")
