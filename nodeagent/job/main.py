"""``job run``: puts the parts of a supervisor together, runs it, and ends with its status.

In this order: what the user wants, then what an earlier supervisor has left, then what the daemon wants.
Nothing of the command runs before all three are known.
"""

import os
import sys
from collections.abc import Sequence

from nodeagent.job import arguments
from nodeagent.job.arguments import Arguments
from nodeagent.job.model import Status
from nodeagent.job.shell.told import tell


def main(words: Sequence[str]) -> int:
    """The exit status."""
    if words[:1] != ["run"]:
        sys.stderr.write("usage: nodeagent-job run [OPTIONS] -- COMMAND\n")
        return Status.BAD_POLICY.value
    return run(arguments.parse(words[1:]))


def run(given: Arguments) -> int:
    from nodeagent.job.shell import assembly

    try:
        return assembly.run(given, os.environ)
    except assembly.NotBegun as error:
        for line in str(error).splitlines():
            tell(line)
        return Status.BAD_POLICY.value
