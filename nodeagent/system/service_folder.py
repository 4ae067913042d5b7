"""The folders that a service manager makes for the daemon, by the variables of systemd.exec(5).

Without a service manager there are none. Nothing is made or looked at here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal


def service_folder(
    variable: Literal["STATE_DIRECTORY", "CACHE_DIRECTORY"], environ: Mapping[str, str]
) -> Path | None:
    """The first, where the unit names several: systemd joins them by colons."""
    first = environ.get(variable, "").partition(":")[0]
    return Path(first) if first else None
