"""Disks in trouble for a process under test: libraries built here and loaded by LD_PRELOAD.

``DiskFault`` makes a directory hang or fail on request; ``LosableCache`` keeps beside a
directory what a disk would hold if the machine lost its power now. The process must be a child:
``env`` is what it is to be started with. The libraries look for their variables at each call, so they may
be loaded before these are named.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.forked.forks import PRELOADED

_SOURCES: Final = Path(__file__).parent
_folder: Final = TemporaryDirectory(prefix="nodeagent-tests-preload-")


@cache
def _built(name: str) -> str:
    library = f"{_folder.name}/{name}.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, _SOURCES / f"{name}.c", "-ldl"],
        check=True,
    )
    PRELOADED.add(library)
    return library


class DiskFault:
    """Calls on files under ``watched`` can be made to hang or fail; ``folder`` is for its own files."""

    def __init__(self, watched: Path, folder: Path) -> None:
        self._flag = folder / "fault"
        self._met = folder / "fault.met"
        os.mkfifo(self._met)
        self.env: Mapping[str, str] = {
            "LD_PRELOAD": _built("fault"),
            "NODEAGENT_FAULT_DIR": str(watched),
            "NODEAGENT_FAULT_FLAG": str(self._flag),
            "NODEAGENT_FAULT_MET": str(self._met),
        }

    def begin(self, mode: str, calls: str = "orws") -> None:
        """``mode`` is hang, eio, enospc or erofs; ``calls`` some of o(pen), r(ead), w(rite), s(ync)."""
        fresh = self._flag.with_suffix(".fresh")
        fresh.write_text(f"{mode} {calls}")
        fresh.rename(self._flag)

    async def begin_hang(self, calls: str) -> "asyncio.Future[None]":
        """The same with ``hang``; the future ends when the first call has begun to hang."""
        loop = asyncio.get_running_loop()
        met: asyncio.Future[None] = loop.create_future()
        reader = os.open(self._met, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

        def hangs() -> None:
            loop.remove_reader(reader)
            os.close(reader)
            if not met.done():
                met.set_result(None)

        loop.add_reader(reader, hangs)
        self.begin("hang", calls)
        return met

    def end(self) -> None:
        self._flag.unlink(missing_ok=True)


class LosableCache:
    """Watches ``directory``; ``lose`` leaves there only what had been synced. Kill the process first."""

    def __init__(self, directory: Path, folder: Path) -> None:
        self._directory = directory
        self._shadow = folder / "synced"
        self._shadow.mkdir()
        self.env: Mapping[str, str] = {
            "LD_PRELOAD": _built("lose"),
            "NODEAGENT_LOSE_DIR": str(directory),
            "NODEAGENT_LOSE_SHADOW": str(self._shadow),
        }

    def lose(self) -> None:
        for file in self._directory.iterdir():
            file.unlink()
        for file in self._shadow.iterdir():
            if file.suffix != ".fresh":
                shutil.copy(file, self._directory)

    def take(self) -> None:
        """Count what lies in the directory now as synced, after another process has worked there."""
        for file in self._shadow.iterdir():
            file.unlink()
        for file in self._directory.iterdir():
            shutil.copy(file, self._shadow)
