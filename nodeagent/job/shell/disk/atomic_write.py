"""Writes a file whole, under another name first: who reads it sees the old text or the new one."""

import os
from contextlib import suppress
from pathlib import Path

from nodeagent.job.shell.disk import regular_files


def write(file: Path, text: str, *, is_lasting: bool = True) -> None:
    """``is_lasting``: also where the power fails. Raises ``OSError``."""
    new = file.with_suffix(".new")
    with suppress(FileNotFoundError):  # of one that was killed amid it, or put there by another
        new.unlink()
    made = regular_files.open_own(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with open(made, "w", encoding="utf-8") as opened:  # noqa: PTH123 # of a descriptor
        opened.write(text)
        opened.flush()
        if is_lasting:
            os.fsync(opened.fileno())
    new.replace(file)
    if is_lasting:
        _keep_names(file.parent)


def _keep_names(folder: Path) -> None:
    """Without this, the power may fail before the new name is on the disk (fsync(2))."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
