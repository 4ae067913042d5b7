"""The program ``nodeagent``. It holds no command.

``nodeagent job run`` and ``job step`` go straight to the supervisor, in a third of the time that the command
line of all commands takes to load.
"""

import atexit
import gc
import os
import sys


def main() -> None:
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
