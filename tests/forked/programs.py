"""The commands that can be forked: their code is loaded once, and a fork becomes the one that is asked for.

Orders come over the socket that is standard input.
"""

import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Final

from nodeagent.cli.entry import main
from nodeagent.cli.main import JOB, PARTS, SLURM
from nodeagent.job.main import end_with
from nodeagent.reset_unit import process
from nodeagent.vendors import RESETS
from nodeagent.worker.main import main as work
from tests.emulator.answers import asking
from tests.forked import nursery
from tests.forked.ending import Ending
from tests.forked.start import await_start

BESIDE: Final = ("nodeagent.daemon.app", *nursery.MODULES, *(each.module for each in RESETS.values()))
"""Imported by a command or a reset when it is called, and by the workers that it starts."""

PROGRAMS: Final[dict[str, Callable[[], object]]] = {
    "nodeagent.cli": main,
    "nodeagent.job": lambda: end_with(sys.argv[1:]),
    "nodeagent.reset_unit": process.main,
    "nodeagent.worker": work,
    "tests.emulator.answers.asking": asking.main,
}
"""What ``python -m`` does with each."""

STARTING_WORKERS: Final = ("run", "scan", "probe")


def serve(ending: Ending) -> None:
    """Loads them, and returns in no fork before its program has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parts = (*PARTS.values(), *JOB.parts.values(), *SLURM.parts.values())
    for module in (*dict.fromkeys(part.module for part in parts), *BESIDE):
        import_module(module)
    gc.freeze()
    start = await_start(socket.socket(fileno=os.dup(0)))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    start.become()
    _, _, module, *arguments = start.words
    if module == "nodeagent.cli" and "".join(arguments[:1]) in STARTING_WORKERS:
        nursery.begin()
    ending.run(PROGRAMS[module])
