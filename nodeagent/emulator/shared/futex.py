"""Wakes the libraries that wait for a word of the state file to change. Linux on x86-64 and 64-bit ARM."""

import ctypes
import platform
from typing import Any, Final

_SYSCALL: Final = {"x86_64": 202, "aarch64": 98}
_WAKE: Final = 1
_ALL: Final = 2**31 - 1
_libc: Final = ctypes.CDLL(None, use_errno=True)


def wake_all(structure: ctypes.Structure, field: str) -> None:
    """Wakes everybody who waits on this 32-bit field. Raises ``KeyError`` on another processor."""
    offset: Any = getattr(type(structure), field).offset
    address = ctypes.addressof(structure) + offset
    _libc.syscall(_SYSCALL[platform.machine()], ctypes.c_void_p(address), _WAKE, _ALL, None, None, 0)
