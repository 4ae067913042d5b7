"""Starts the process of a reset so that it outlives the daemon: as a unit of its own, or detached.

Under systemd the daemon's processes end with its unit, and lack the privileges that a reset needs; systemd
itself starts the unit, at a word on its socket. The daemon has no other way to what runs as root, and needs
none. Which configuration is read for the reset is said by the unit, or by the command line here, never by
the request.
"""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from nodeagent.config.reset import RUN_DIRECTORY, UNIT_SOCKET

START_LIMIT_S: Final = 10.0
_SYSTEMD_RUNS: Final = Path("/run/systemd/system")
_UNIX_SOCKETS: Final = Path("/proc/self/net/unix")
_ACCEPTS: Final = 1 << 16
"""``__SO_ACCEPTCON`` of include/uapi/linux/net.h."""


class NotStarted(Exception):
    """str() says why; nothing runs."""


def why_it_cannot(folder: Path) -> str:
    """Why no process of a reset could be started now, "" if nothing says so. To ask starts nothing."""
    if not _is_units(folder) or _listens(UNIT_SOCKET):
        return ""
    return f"nothing can reset a device here: {_not_listening('no process listens')}"


async def start(folder: Path, name: str, config_path: Path | None) -> None:
    """Start the process for the request of that name. Raises ``NotStarted`` and ``OSError``."""
    if _is_units(folder):
        await _ask_unit(name)
    else:
        await _detach(folder, name, config_path)


def _is_units(folder: Path) -> bool:
    return runs_as_unit(os.environ) and str(folder) == RUN_DIRECTORY


def _listens(socket: str) -> bool:
    """Whether anybody does, by the kernel's list (``/proc/net/unix``, proc(5)): to connect starts a unit. Of
    others the names may hold anything, also line feeds.
    """
    flags = rf"^[0-9a-f]+: [0-9A-F]+ [0-9A-F]+ ([0-9A-F]{{8}}) [0-9A-F]+ [0-9A-F]+ +\d+ {re.escape(socket)}$"
    found = re.findall(flags.encode(), _UNIX_SOCKETS.read_bytes(), re.MULTILINE)
    return any(int(each, 16) & _ACCEPTS for each in found)


def _not_listening(why: str) -> str:
    return f"{UNIT_SOCKET}: {why}; is nodeagent-reset.socket active?"


def runs_as_unit(environ: Mapping[str, str]) -> bool:
    """Whether systemd is process 1 (sd_booted(3)) and started this process (systemd.exec(5))."""
    return _SYSTEMD_RUNS.is_dir() and "INVOCATION_ID" in environ and "NOTIFY_SOCKET" in environ


async def _ask_unit(name: str) -> None:
    """Each connection is an instance of the unit (``Accept=`` in systemd.socket(5))."""
    try:
        async with asyncio.timeout(START_LIMIT_S):
            _, writer = await asyncio.open_unix_connection(UNIT_SOCKET)
            try:
                writer.write(f"{name}\n".encode())
                await writer.drain()
            finally:
                writer.close()
    except OSError as error:
        why = error.strerror or f"no answer within {START_LIMIT_S:g} s"
        raise NotStarted(_not_listening(why)) from error


async def _detach(folder: Path, name: str, config_path: Path | None) -> None:
    """Start it through a process that ends at once, so that it is not a child of the daemon."""
    command = [sys.executable, "-m", "nodeagent.reset_unit", name, "--folder", str(folder)]
    if config_path is not None:
        command += ["--config", str(config_path)]
    with (folder / f"{name}.log").open("ab") as output:
        await _run(("sh", "-c", 'setsid "$@" &', "sh", *command), output)


async def _run(command: Sequence[str], output: IO[bytes] | None = None) -> None:
    """What it prints goes to ``output``, else into the words of what it raises."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output or asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(START_LIMIT_S):
            said, _ = await process.communicate()
    except TimeoutError as error:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise NotStarted(f"{' '.join(command)} has not ended within {START_LIMIT_S:g} s") from error
    if process.returncode != 0:
        words = (said or b"").decode(errors="replace").strip()[:300]
        raise NotStarted(f"{' '.join(command)}: exit status {process.returncode}: {words}")
