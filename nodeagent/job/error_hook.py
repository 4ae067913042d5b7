"""What a Python program of a job runs at its start: it notes the error that ends the program, and lets its
stacks be asked for, where the supervisor can read both. The standard error may be a pipe.

The supervisor copies this file and ``site_hook`` into a folder on ``PYTHONPATH``, and names a folder for
errors in ``NODEAGENT_ERRORS``. It imports only what Python has loaded already or has built in, takes nothing
away (the error is printed as ever), and never raises. An exception in a thread, or one that a launcher
catches, is none that ends the program.

Others set ``sys.excepthook``, too: torch calls the one before it (``_distributed_excepthook`` of
torch/distributed/distributed_c10d.py); NVIDIA's resiliency extension calls none, and ends by ``os._exit``
(``install_exception_handler`` of nvidia_resiliency_ext/fault_tolerance/utils.py). Python keeps the error in
``sys.last_value`` before it calls any, so that it is known at the end in each case.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module ``typing`` costs milliseconds
    from typing import NoReturn

FOLDER = "NODEAGENT_ERRORS"
STACKS_SIGNAL_BELOW_MAX = 6
"""SIGRTMAX less this: signal(7); the highest and the lowest have other users."""

STACKS_FILE = "nodeagent-stacks"
"""The name of a file in memory (memfd_create(2)): it needs no folder, and is gone with the process."""

MAX_CHARACTERS = 65_536


def install(folder: str) -> None:
    import atexit

    noted: list[BaseException] = []
    earlier_hook, earlier_exit = sys.excepthook, os._exit

    def note(error: BaseException | None) -> None:
        if not isinstance(error, Exception) or any(each is error for each in noted):
            return
        noted.append(error)
        try:
            _write(folder, error)
        except Exception:  # the program ends by its own error, and by no other
            pass

    def hook(kind: type[BaseException], error: BaseException, trace: object) -> None:
        note(error)
        earlier_hook(kind, error, trace)  # type: ignore[arg-type]

    def exit_at_once(status: int) -> NoReturn:
        if status != 0:
            note(getattr(sys, "last_value", None))
        earlier_exit(status)

    sys.excepthook = hook
    os._exit = exit_at_once
    atexit.register(lambda: note(getattr(sys, "last_value", None)))
    offer_stacks()


def _write(folder: str, error: BaseException) -> None:
    import traceback

    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    pid, rank = os.getpid(), os.environ.get("RANK", "")
    made = os.path.join(folder, f"{pid}.new")
    with open(made, "w", encoding="utf-8", errors="replace") as opened:
        opened.write(f"{rank}\n{text[-MAX_CHARACTERS:]}")
    os.replace(made, os.path.join(folder, f"{pid}.error"))


def offer_stacks() -> None:
    """Also of each process that is forked without an exec, as multiprocessing does: each has its own file."""
    import _signal  # type: ignore[import-not-found]
    import faulthandler

    number = _signal.SIGRTMAX - STACKS_SIGNAL_BELOW_MAX
    if _signal.getsignal(number) != _signal.SIG_DFL:
        return
    opened = [os.memfd_create(STACKS_FILE)]
    faulthandler.register(number, file=opened[0], all_threads=True)

    def again() -> None:
        try:
            os.close(opened[0])
            opened[0] = os.memfd_create(STACKS_FILE)
            faulthandler.register(number, file=opened[0], all_threads=True)
        except OSError:
            faulthandler.unregister(number)

    os.register_at_fork(after_in_child=again)
