"""How a fork ends: as Python ends a program, up to the point where it would take down what is loaded.

That part has no effect outside the process. It touches every page that the fork shares with the process it
comes from, and so costs more than a short command.
"""

import atexit
import os
import sys
from collections.abc import Callable


class Ending:
    """To be made before imported modules register their own functions with ``atexit``: the first that is
    registered is called last, after threads have ended.
    """

    def __init__(self) -> None:
        self._status: int | None = None
        atexit.register(self._end)

    def run(self, program: Callable[[], object]) -> None:
        """An exception other than SystemExit is left to Python, with the end that follows from it."""
        try:
            program()
        except SystemExit as ended:
            self._status = _status_of(ended)
            raise
        self._status = 0

    def _end(self) -> None:
        if self._status is None:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            return  # Python has a status for this
        os._exit(self._status)


def _status_of(ended: SystemExit) -> int:
    """As Python derives it (``handle_system_exit`` in CPython's pythonrun.c)."""
    if ended.code is None:
        return 0
    return ended.code if isinstance(ended.code, int) else 1
