"""Finding and opening a library of the vendor's, as the vendor's own tools do, and saying why not.

The configured path alone, else each folder of LD_LIBRARY_PATH, else what ldconfig knows, else where the
driver's installer puts it. Opened lazily and globally, because its libraries look for each other's symbols.
It searches nowhere else, and loads nothing it was not asked for.
"""

import ctypes
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from nodeagent.drivers.api import Unavailable

USUAL_FOLDERS: Final = (
    Path("/usr/local/dcmi"),
    Path("/usr/local/Ascend/driver/lib64"),
    Path("/usr/local/Ascend/driver/lib64/driver"),
    Path("/usr/local/Ascend/driver/lib64/common"),
)

_ELF_MAGIC: Final = b"\x7fELF"
_MACHINES: Final[Mapping[int, str]] = {0x03: "i686", 0x28: "armv7l", 0x3E: "x86_64", 0xB7: "aarch64"}
"""``e_machine`` of elf(5), by the name that uname(1) gives such a machine."""


class NotLoaded(Unavailable):
    """There is no such library, or none that this process can load."""


def load(name: str, configured: str, environ: Mapping[str, str] = os.environ) -> ctypes.CDLL:
    """Open it. Raises ``NotLoaded``, ``absent`` if it is nowhere to be found."""
    for path in _candidates(name, configured, environ):
        try:
            is_there = path.is_file()
        except PermissionError as error:
            raise NotLoaded(f"{path}: {error.strerror}", errno=error.errno or 0) from error
        if is_there:
            _check_readable(path)
            return _open(str(path))
    if configured:
        raise NotLoaded(f"{configured}: there is no such library", absent=True)
    try:
        return ctypes.CDLL(name, mode=os.RTLD_LAZY | os.RTLD_GLOBAL)
    except OSError as error:
        if "cannot open shared object file: No such file" in str(error) and name in str(error).split(":")[0]:
            raise NotLoaded(f"{name} is not installed", absent=True) from error
        raise NotLoaded(str(error)) from error


def _candidates(name: str, configured: str, environ: Mapping[str, str]) -> Iterator[Path]:
    if configured:
        yield Path(configured)
        return
    listed = (Path(folder) for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder)
    for folder in (*listed, *USUAL_FOLDERS):
        yield folder / name


def _check_readable(path: Path) -> None:
    """Say plainly what dlopen would say in riddles."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError as error:
        raise NotLoaded(f"{path}: {error.strerror}", errno=error.errno or 0) from error
    if len(head) < 20 or not head.startswith(_ELF_MAGIC):
        raise NotLoaded(f"{path} is no shared library")
    machine = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    built_for = _MACHINES.get(machine, f"machine {machine:#x}")
    if built_for != platform.machine():
        raise NotLoaded(f"{path} is built for {built_for}, this machine is {platform.machine()}")


def _open(path: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(path, mode=os.RTLD_LAZY | os.RTLD_GLOBAL)
    except OSError as error:
        raise NotLoaded(f"{path} cannot be loaded: {error}") from error
