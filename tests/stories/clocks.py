"""Clocks of a daemon that a test can step: what it takes for the wall clock, or for the time since boot."""

import subprocess
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from tests.forked.forks import PRELOADED

_folder: Final = TemporaryDirectory(prefix="nodeagent-tests-clocks-")


@cache
def _library() -> Path:
    """It looks for its files at each call, so it may be loaded before they are named."""
    library = Path(_folder.name) / "clocks.so"
    source = Path(__file__).with_name("clocks.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], check=True)
    PRELOADED.add(str(library))
    return library


class SteppedClock:
    """``env`` is for the daemon. Not stepped, the clock is the kernel's."""

    def __init__(self, folder: Path, which: Literal["WALL", "BOOT"]) -> None:
        self._offset = folder / f"{which.lower()}-clock"
        self.env = {"LD_PRELOAD": str(_library()), f"NODEAGENT_{which}_CLOCK": str(self._offset)}

    def step(self, by: timedelta) -> None:
        """So far from the kernel's, from now on."""
        fresh = self._offset.with_suffix(".fresh")
        fresh.write_text(str(int(by.total_seconds())))
        fresh.rename(self._offset)

    def pass_on(self, by: timedelta) -> None:
        """So much further than it was stepped before."""
        stepped_s = int(self._offset.read_text()) if self._offset.exists() else 0
        self.step(timedelta(seconds=stepped_s) + by)
