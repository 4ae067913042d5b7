"""Finding and opening a library of the vendor's, as the vendor's own tools do, and saying why not.

The configured path alone, else each folder of LD_LIBRARY_PATH, else what ldconfig knows, else where the
driver's installer puts it. Opened lazily and globally, because its libraries look for each other's symbols.
It searches nowhere else, and loads nothing it was not asked for.
"""

import ctypes
import os
import platform
from collections.abc import Iterable, Mapping
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

_dlopen: Final = ctypes.CDLL(None).dlopen
_dlopen.argtypes, _dlopen.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
_dlerror: Final = ctypes.CDLL(None).dlerror
_dlerror.argtypes, _dlerror.restype = (), ctypes.c_char_p


class NotLoaded(Unavailable):
    """There is no such library, or none that this process can load."""


def load(name: str, configured: str, environ: Mapping[str, str] = os.environ) -> ctypes.CDLL:
    """Open it. Raises ``NotLoaded``, ``absent`` if it is nowhere to be found."""
    if configured:
        if (found := _find([Path(configured)])) is None:
            raise NotLoaded(f"{configured}: there is no such library", absent=True)
        return _open(str(found))
    listed = [Path(folder) / name for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    if (found := _find(listed)) is not None:
        return _open(str(found))
    try:
        return _open(name)
    except NotLoaded as error:
        if f"{name}: cannot open shared object file: No such file" not in str(error):
            raise
    if (found := _find([folder / name for folder in USUAL_FOLDERS])) is not None:
        return _open(str(found))
    raise NotLoaded(f"{name} is not installed", absent=True)


def _find(paths: Iterable[Path]) -> Path | None:
    """The first of these that is there, if it can be read. Raises ``NotLoaded``."""
    for path in paths:
        try:
            is_there = path.is_file()
        except PermissionError as error:
            raise NotLoaded(f"{path}: {error.strerror}", errno=error.errno or 0) from error
        if is_there:
            _check_readable(path)
            return path
    return None


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
    """Left to itself ctypes demands every symbol at once, also those that nobody calls."""
    handle = _dlopen(os.fsencode(path), os.RTLD_LAZY | os.RTLD_GLOBAL)
    if handle is None:
        raise NotLoaded(f"{path} cannot be loaded: {os.fsdecode(_dlerror() or b'')}")
    return ctypes.CDLL(path, handle=handle)
