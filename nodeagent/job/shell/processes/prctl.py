"""Two calls of prctl(2) that Python does not have."""

import ctypes
import os
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
"""linux/prctl.h"""


def become_subreaper() -> None:
    """Orphans below this process become its children. Raises ``OSError``."""
    _call("PR_SET_CHILD_SUBREAPER", _PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """This process gets SIGKILL once the parent's thread that made it ends. Raises ``OSError``."""
    _call("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, signal.SIGKILL)


def _call(name: str, option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({name}): {os.strerror(number)}")
