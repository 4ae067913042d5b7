"""Which files beside the configuration are read after it: those of its folder for drop-ins. It reads none."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nodeagent.toml.folder import files_of
from nodeagent.toml.problem import Problem

ENDING: Final = ".toml"
MOST_FILES: Final = 64


def drop_in_folder(file: Path) -> Path:
    """``nodeagent.d`` beside ``nodeagent.toml``; for a file with another ending ``.d`` behind its name."""
    return file.parent / f"{file.name.removesuffix(ENDING)}.d"


def drop_ins(file: Path, report: Callable[[Problem], None]) -> list[Path]:
    """The drop-ins of the configuration at ``file``, which need not exist, in the order of their names.

    None where there is no such folder, and after having reported what is wrong with it.
    """
    folder = drop_in_folder(file)
    if not os.path.lexists(folder):
        return []
    return files_of(folder, (ENDING,), MOST_FILES, "configuration files", report)
