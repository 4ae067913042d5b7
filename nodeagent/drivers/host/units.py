"""What systemd says of its services, by the files that it keeps for others to read. It asks systemd nothing.

- ``/run/systemd/units/invocation:NAME`` is a link while the unit runs, starts or stops, and says which run of
  it this is; one that has failed, has ended or waits to be restarted has none (``unit_export_state_files``,
  ``unit_notify`` in src/core/unit.c of systemd, from version 235 on).
- ``*.wants/NAME`` and ``*.requires/NAME`` in the folders of units: it is enabled (systemd.unit(5),
  [Install]).
- ``NAME`` in one of those folders as a link to ``/dev/null``: it is masked.

systemd's bus would say more, such as why a service failed. But to root it obeys: whoever reads it there could
also stop any service, and the daemon is to have no such power.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_RUNS: Final = "run/systemd/units"
_FOLDERS: Final = ("etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
"""The first one that has a unit decides (systemd.unit(5), unit file load path)."""

_WANTED_BY: Final = (".wants", ".requires")


class Units:
    """``root`` is that of the node's file system."""

    def __init__(self, root: Path) -> None:
        self._runs = root / _RUNS
        self._folders = [root / folder for folder in _FOLDERS]

    def are_kept(self) -> bool:
        """False where the node has no systemd, or this process may not see it."""
        return self._runs.is_dir()

    def run_of(self, unit: str) -> str:
        """Which run of it this is, "" where it does not run. Raises ``OSError``."""
        try:
            return str((self._runs / f"invocation:{unit}").readlink())
        except FileNotFoundError:
            return ""

    def enabled(self) -> frozenset[str]:
        """The names of the services that are started with the node, or with others. Raises ``OSError``."""
        wanted = {name for folder in self._folders for name in _wanted_in(folder)}
        return frozenset(name for name in wanted if not self._is_masked(name))

    def _is_masked(self, unit: str) -> bool:
        for folder in self._folders:
            file = folder / unit
            if file.is_symlink() or file.exists():
                return file.is_symlink() and str(file.readlink()) == os.devnull
        return False


def _wanted_in(folder: Path) -> Iterator[str]:
    for target in _names(folder):
        if target.endswith(_WANTED_BY):
            yield from (name for name in _names(folder / target) if name.endswith(".service"))


def _names(folder: Path) -> list[str]:
    """Empty where there is no such folder."""
    try:
        return [entry.name for entry in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
