"""What a Python program of a job runs as ``sitecustomize``: it notes the error that ends the program, and
lets its stacks be asked for, where the supervisor can read both: the standard error may be a pipe.

The supervisor copies this file into a folder on ``PYTHONPATH`` and names a folder in ``NODEAGENT_ERRORS``.
Without that variable nothing happens. It imports only what Python has loaded already or has built in, takes
nothing away (the error is printed as ever, another ``sitecustomize`` is run too), and never raises. An
exception in a thread, or one that a launcher catches, is none that ends the program.
"""

from __future__ import annotations

import os
import sys

FOLDER = "NODEAGENT_ERRORS"
STACKS_SIGNAL_BELOW_MAX = 6
"""SIGRTMAX less this: signal(7); the highest and the lowest have other users."""


def install(folder: str) -> None:
    import _signal  # type: ignore[import-not-found]
    import atexit
    import faulthandler

    earlier = sys.excepthook
    pid = os.getpid()
    noted: list[object] = []

    def note(error: BaseException | None) -> None:
        if error is None or noted or os.getpid() != pid or not isinstance(error, Exception):
            return
        noted.append(error)
        try:
            import traceback

            text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
            rank = os.environ.get("RANK", "")
            made = os.path.join(folder, f"{pid}.new")
            with open(made, "w", encoding="utf-8", errors="replace") as opened:
                opened.write(f"{rank}\n{text[-65536:]}")
            os.replace(made, os.path.join(folder, f"{pid}.error"))
        except Exception:  # the program ends by its own error, and by no other
            pass

    def hook(kind: type[BaseException], error: BaseException, trace: object) -> None:
        note(error)
        earlier(kind, error, trace)  # type: ignore[arg-type]

    sys.excepthook = hook
    stacks = os.path.join(folder, f"{pid}.stacks")
    number = _signal.SIGRTMAX - STACKS_SIGNAL_BELOW_MAX
    if _signal.getsignal(number) == _signal.SIG_DFL:
        opened = os.open(stacks, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        faulthandler.register(number, file=opened, all_threads=True)

    def at_exit() -> None:
        """Also where something has replaced the hook: Python keeps the last error before it calls one."""
        if os.getpid() == pid:
            note(getattr(sys, "last_value", None))
            try:
                os.unlink(stacks)
            except OSError:
                pass

    atexit.register(at_exit)


def run_next(own: str) -> None:
    """The ``sitecustomize`` that there would be without this one."""
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or ".") != own]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found] # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


if __name__ == "sitecustomize":
    try:
        if os.environ.get(FOLDER):
            install(os.environ[FOLDER])
    except Exception:  # a program runs also without it
        pass
    run_next(os.path.dirname(os.path.abspath(__file__)))
