"""In the process of the tests: a command of nodeagent is forked, where it would be executed.

To load the code is two thirds of the processor time of a daemon's start, and most of a command's; a thousand
are started. What is forked goes on as ``python -m nodeagent.cli`` does after its imports: with the arguments,
environment, directory and files that the test gave it. There are two processes to fork from, taken in turn by
each command, whose texts have different hashes: a daemon's next life finds its sets in another order.

So are the workers that a test has started by itself (``tests.daemon.staged``).

Executed as ever are all other programs, among them the installed script ``nodeagent``; and a command that is
started by another program, in a session of its own, or with something said to the loader or to Python.
"""

import os
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest

from tests.forked.start import ROOM, WORKER, Loaded, Start, counting_at_start, real_fork_exec

ROOT: Final = Path(__file__).parents[2]
COMMAND: Final = [sys.executable, "-m", "nodeagent.cli"]
PROGRAMS: Final = (
    COMMAND,
    [sys.executable, "-m", "nodeagent.job"],
    [sys.executable, "-m", "nodeagent.reset_unit"],
    [sys.executable, "-m", "tests.emulator.answers.asking"],
)
FROM_ANYWHERE: Final = ["env", f"PYTHONPATH={ROOT}"]
"""Stands before a worker that imports ``tests`` wherever pytest was started: a fork does so anyway."""

HASH_SEEDS: Final = ("1", "2")

PRELOADED: Final = set[str]()
"""Libraries for LD_PRELOAD that take nothing from the environment as they are loaded: there is a pair of
processes to fork from for each.
"""


class Origin:
    """A process to fork commands from; it ends with this one."""

    def __init__(self, hash_seed: str, preloaded: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forked.origin", ROOM],
                cwd=ROOT,
                env={**os.environ, "PYTHONHASHSEED": hash_seed, **preloaded},
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),  # no file: Python would take that of a fork for one
            )
        self.loaded = Loaded(ours)

    def end(self) -> None:
        self.loaded.end()
        self._process.wait()


class Forks:
    """In place of ``subprocess``'s call that forks and executes."""

    def __init__(self) -> None:
        self._fork_exec = real_fork_exec()
        self._at_start = counting_at_start(os.environ)
        self._origins: dict[tuple[str, str], Origin] = {}
        self._turns = defaultdict[str, Iterator[str]](lambda: cycle(HASH_SEEDS))

    def begin(self, patch: pytest.MonkeyPatch) -> None:
        """Until the patch is undone."""
        patch.setattr(subprocess, "_fork_exec", self)

    def __call__(self, *given: Any) -> int:
        asked = Start.of(given)
        if asked is None:
            return self._fork_exec(*given)
        start, files = asked
        if start.words[:2] == FROM_ANYWHERE:
            start = replace(start, words=start.words[2:])
        at_start = start.counting_at_start
        preloaded = at_start.get("LD_PRELOAD", "")
        if preloaded in PRELOADED:
            del at_start["LD_PRELOAD"]
        if at_start.get("PYTHONPATH") == str(ROOT):  # where it is from anyway
            del at_start["PYTHONPATH"]
        if not _may_be_forked(start) or at_start != self._at_start:
            return self._fork_exec(*given)
        seed = next(self._turns["".join(start.words[3:4])])
        return self._origin(seed, preloaded).loaded.fork(start, files)

    def _origin(self, hash_seed: str, preloaded: str) -> Origin:
        if (hash_seed, preloaded) not in self._origins:
            named = {"LD_PRELOAD": preloaded} if preloaded in PRELOADED else {}
            self._origins[hash_seed, preloaded] = Origin(hash_seed, named)
        return self._origins[hash_seed, preloaded]

    def end(self) -> None:
        for origin in self._origins.values():
            origin.end()


def _may_be_forked(start: Start) -> bool:
    program = list(start.words[:3])
    return program == WORKER or (program in PROGRAMS and not start.own_session)
