"""``job run`` and ``job step``: reads the command line, runs a supervisor or the loop of a step, and ends
with its status. It puts no part together.
"""

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn


def end_with(argv: Sequence[str]) -> NoReturn:
    """As ``main``, and ends the process at once: to take an interpreter down piece by piece is a tenth of
    what a short command waits for. Nothing is left to be written.
    """
    os._exit(main(argv))


def main(argv: Sequence[str]) -> int:
    """Run the supervisor; the answer is its exit status."""
    # All that is loaded now stays: to look through it for garbage again and again is a tenth of the start.
    gc.disable()
    from nodeagent.job.model import ExitStatus
    from nodeagent.job.policy import arguments
    from nodeagent.job.shell import assembly
    from nodeagent.job.shell.standard_error import on_one_line, print_message

    gc.enable()
    try:
        if argv[:1] == ["run"]:
            return assembly.run(arguments.parse(argv[1:]), os.environ)
        if argv[:1] == ["step"]:
            from nodeagent.job.step import arguments as of_step
            from nodeagent.job.step import process as step

            return step.run(of_step.parse_step(argv[1:]), os.environ)
    except assembly.NotBegun as error:
        for line in on_one_line(str(error), argv).splitlines():
            print_message(line)
    else:
        sys.stderr.write("usage: nodeagent-job run|step [OPTIONS] -- COMMAND\n")
    return ExitStatus.BAD_POLICY.value
