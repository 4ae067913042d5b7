"""In a forked daemon: its workers are forked too, from a child that it had before it had threads.

To load its code is most of the processor time of a worker's start; thousands are started. What is forked goes
on as ``python -m nodeagent.worker`` does after its imports. Those of the reset unit and of an installed
package are executed as ever.
"""

import os
import signal
import socket
import subprocess
from typing import Any, Final

from nodeagent.vendors import DRIVERS
from nodeagent.worker.main import main
from tests.forked.start import WORKER, Loaded, Start, await_start, counting_at_start, real_fork_exec

MODULES: Final = tuple(traits.module for traits in DRIVERS.values())


class Workers:
    """In place of ``subprocess``'s call that forks and executes."""

    def __init__(self, loaded: Loaded, at_start: dict[str, str]) -> None:
        self._fork_exec = real_fork_exec()
        self._loaded = loaded
        self._at_start = at_start

    def __call__(self, *given: Any) -> int:
        asked = Start.of(given)
        if asked is None:
            return self._fork_exec(*given)
        start, files = asked
        if start.words[: len(WORKER)] != WORKER or start.counting_at_start != self._at_start:
            return self._fork_exec(*given)
        return self._loaded.fork(start, files)


def begin() -> None:
    """Returns in the daemon; never in the child, nor in the workers."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        _serve(theirs)
    theirs.close()
    vars(subprocess)["_fork_exec"] = Workers(Loaded(ours), counting_at_start(os.environ))


def _serve(connection: socket.socket) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):  # who waits for the end of what the daemon prints waits for the daemon alone
        os.dup2(nowhere, number)
    os.close(nowhere)
    start = await_start(connection)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    start.become()
    main()
