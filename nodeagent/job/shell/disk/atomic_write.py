"""Writes a file whole, under another name first: who reads it sees the old text or the new one."""

import os
from pathlib import Path


def write(file: Path, text: str, *, is_lasting: bool = True) -> None:
    """``is_lasting``: also where the power fails. Raises ``OSError``."""
    new = file.with_suffix(".new")
    with new.open("w", encoding="utf-8") as opened:
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
