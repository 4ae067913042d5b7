"""Clocks of a daemon that a test can step: what it takes for the wall clock, or for the time since boot."""

import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Literal


class SteppedClock:
    """``env`` is for the daemon. Not stepped, the clock is the kernel's."""

    def __init__(self, folder: Path, which: Literal["WALL", "BOOT"]) -> None:
        self._offset = folder / f"{which.lower()}-clock"
        library = folder / "clocks.so"
        source = Path(__file__).with_name("clocks.c")
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], check=True
        )
        self.env = {"LD_PRELOAD": str(library), f"NODEAGENT_{which}_CLOCK": str(self._offset)}

    def step(self, by: timedelta) -> None:
        """So far from the kernel's, from now on."""
        fresh = self._offset.with_suffix(".fresh")
        fresh.write_text(str(int(by.total_seconds())))
        fresh.rename(self._offset)

    def pass_on(self, by: timedelta) -> None:
        """So much further than it was stepped before."""
        stepped_s = int(self._offset.read_text()) if self._offset.exists() else 0
        self.step(timedelta(seconds=stepped_s) + by)
