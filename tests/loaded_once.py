"""The daemons and commands that tests start are forked from a process that has loaded their code already.

To load it is two thirds of the processor time of a daemon's start, and most of a command's; a thousand are
started. What is forked goes on as ``python -m nodeagent.cli`` does after its imports: with the arguments,
environment, directory and files that the test gave it, as a child of the test's process. There are two to
fork from, taken in turn by each command, whose texts have different hashes: a daemon's next life finds its
sets in another order.

Executed as ever are all other programs, among them the installed script ``nodeagent``; and a command that is
started by another program, in a session of its own, or with something said to the loader or to Python.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[1]
COMMAND: Final = [sys.executable, "-m", "nodeagent.cli"]
MAX_ORDER_BYTES: Final = 1 << 18
HASH_SEEDS: Final = ("1", "2")
AS_IT_IS: Final = (False, -1, None, None, None, -1, None)
"""No session, process group, user, groups or umask of its own, and nothing to be called in it."""

PRELOADED: Final = set[str]()
"""Libraries for LD_PRELOAD that take nothing from the environment as they are loaded: there is a pair of
processes to fork from for each.
"""

ForkExec = Callable[..., int]


class Origin:
    """A process to fork from; it ends with this one."""

    def __init__(self, hash_seed: str, preloaded: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.loaded_origin"],
                cwd=ROOT,
                env={**os.environ, "PYTHONHASHSEED": hash_seed, **preloaded},
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),  # no file: Python would take that of a fork for one
            )
        self._connection = ours
        self._one_at_a_time = threading.Lock()

    def fork(self, order: object, files: Sequence[int]) -> int:
        """The pid."""
        with self._one_at_a_time:
            socket.send_fds(self._connection, [json.dumps(order).encode()], files)
            pid = self._connection.recv(32)
        assert pid, "the process that daemons are forked from has ended"
        return int(pid)

    def end(self) -> None:
        self._connection.close()
        self._process.wait()


class Forks:
    """In place of ``subprocess``'s call that forks and executes; asyncio's processes come through it too."""

    def __init__(self) -> None:
        self._fork_exec: ForkExec = vars(subprocess)["_fork_exec"]
        self._at_start = _at_start(os.environ)
        self._origins: dict[tuple[str, str], Origin] = {}
        self._turns = defaultdict[str, Iterator[str]](lambda: cycle(HASH_SEEDS))

    def begin(self, patch: pytest.MonkeyPatch) -> None:
        """Until the patch is undone."""
        patch.setattr(subprocess, "_fork_exec", self)

    def __call__(self, *given: Any) -> int:
        """The arguments are those of ``Popen._execute_child`` in CPython's subprocess.py."""
        arguments, _, _, kept_open, directory, environment, *rest = given
        stdin, _, _, stdout, _, stderr = rest[:6]
        words = [os.fsdecode(word) for word in arguments]
        variables = os.environ if environment is None else _variables(environment)
        at_start = _at_start(variables)
        preloaded = at_start.get("LD_PRELOAD", "")
        if preloaded in PRELOADED:
            del at_start["LD_PRELOAD"]
        if (
            words[: len(COMMAND)] != COMMAND
            or len(kept_open) > 1  # the pipe for errors of the start is one
            or tuple(rest[9:16]) != AS_IT_IS
            or at_start != self._at_start
        ):
            return self._fork_exec(*given)
        order = {
            "arguments": words[len(COMMAND) :],
            "environment": dict(variables),
            "directory": os.fsdecode(directory or Path.cwd()),
        }
        files = [number if own == -1 else own for number, own in enumerate((stdin, stdout, stderr))]
        seed = next(self._turns["".join(words[len(COMMAND) :][:1])])
        return self._origin(seed, preloaded).fork(order, files)

    def _origin(self, hash_seed: str, preloaded: str) -> Origin:
        if (hash_seed, preloaded) not in self._origins:
            named = {"LD_PRELOAD": preloaded} if preloaded in PRELOADED else {}
            self._origins[hash_seed, preloaded] = Origin(hash_seed, named)
        return self._origins[hash_seed, preloaded]

    def end(self) -> None:
        for origin in self._origins.values():
            origin.end()


def _at_start(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that count when a program is executed, and only then."""
    return {name: value for name, value in variables.items() if name.startswith(("LD_", "PYTHON"))}


def _variables(environment: Sequence[bytes]) -> dict[str, str]:
    pairs = (os.fsdecode(each).partition("=") for each in environment)
    return {name: value for name, _, value in pairs}
