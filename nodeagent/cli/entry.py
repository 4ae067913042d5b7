"""The program ``nodeagent``. It holds no command.

``nodeagent job run`` and ``job step`` go straight to the supervisor, in a third of the time that the command
line of all commands takes to load.
"""

import atexit
import gc
import os
import sys


def _complete_streams() -> None:
    """Give the process all three standard streams, and let each take any text.

    Where one is closed (``>&-``), Python has None in its place, and the next file that is opened would get
    its number. A character that the encoding of a terminal lacks is shown as a question mark.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            opened = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # the lowest number that is free
            setattr(sys, name, os.fdopen(opened, mode, encoding="utf-8"))
        elif mode == "w" and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="replace")


def main() -> None:
    _complete_streams()
    # At its end Python would look through all modules for garbage: a sixth of a short command, more of a
    # daemon that ends.
    atexit.register(gc.freeze)
    if sys.argv[1:3] in (["job", "run"], ["job", "step"]):
        from nodeagent.job.main import end_with

        end_with(sys.argv[2:])
    from nodeagent.cli.main import main as commands

    if "_NODEAGENT_COMPLETE" in os.environ:
        from nodeagent.cli.shared.completion import complete

        complete(commands)
    commands(prog_name="nodeagent")
