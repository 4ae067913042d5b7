"""The IMEX service, by which GPUs of several nodes of a fabric share memory (GB200 NVL72 and its like).

It is asked as NVIDIA's DCGM asks it (dcgmlib/src/DcgmImexManager.cpp): ``nvidia-imex-ctl -q`` prints the
state of this node's own daemon, ``-N -j`` that of the domain of all nodes. A node without the command,
without a configuration or whose daemon does not run has no fault: where a job brings its own IMEX, as with
NVIDIA's DRA driver for Kubernetes, an idle node has none (docs/configuration/gpu-health-monitor.md of
NVSentinel). An answer that nobody knows says nothing. A thread of its own asks, so that nothing waits for it.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

NOT_READY: Final = "NV_IMEX_NOT_READY"
DOWN: Final = "NV_IMEX_DOMAIN_DOWN"
DEGRADED: Final = "NV_IMEX_DOMAIN_DEGRADED"

CODES: Final = (NOT_READY, DOWN, DEGRADED)

ASK_S: Final = 60.0
LIMIT_S: Final = 30.0
"""So long each of the two questions may take. Both are as in DCGM."""

_COMMAND: Final = "nvidia-imex-ctl"
_FOLDERS: Final = ("usr/bin", "usr/local/bin", "opt/nvidia/imex/bin", "usr/local/nvidia/imex/bin")
_NOT_CONFIGURED: Final = "Failed to read node configuration file"
_GOOD: Final = frozenset({"READY", "UNAVAILABLE"})
_UNDER_WAY: Final = frozenset(
    {
        "INITIALIZING",
        "STARTING_AUTH_SERVER",
        "WAITING_FOR_PEERS",
        "WAITING_FOR_RECOVERY",
        "INIT_GPU",
        "SHUTTING_DOWN",
    }
)
_DOMAIN: Final[Mapping[str, str]] = {"DOWN": DOWN, "DEGRADED": DEGRADED, "UP": ""}


class _Domain(msgspec.Struct):
    """What of the answer to ``-N -j`` is read: the status of the whole, not those of its nodes."""

    status: str


_decoder: Final = msgspec.json.Decoder(_Domain)


class Imex:
    """The IMEX service of the node. ``look`` is called at every poll. ``driver_root`` is of a driver in a
    root of its own.
    """

    def __init__(self, driver_root: str = "") -> None:
        self._roots = [Path("/"), *([Path(driver_root)] if driver_root else [])]
        self._thread: threading.Thread | None = None
        self._known: Mapping[str, bool] = {}
        self._said = ""

    def look(self) -> Mapping[str, bool]:
        """Which of ``CODES`` are active, by its latest answer; empty until there is one."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._ask_forever, name="imex", daemon=True)
            self._thread.start()
        return self._known

    def ask(self) -> Mapping[str, bool]:
        """What it says now; what it does not say stays as it was."""
        self._known = self._states()
        return self._known

    def _ask_forever(self) -> None:
        while True:
            self.ask()
            time.sleep(ASK_S)

    def _states(self) -> Mapping[str, bool]:
        command = next(self._commands(), None)
        if command is None:
            return dict.fromkeys(CODES, False)
        daemon, domain = self._answer(command, "-q"), self._answer(command, "-N", "-j")
        known = dict(self._known)
        if _NOT_CONFIGURED in daemon:
            known = dict.fromkeys(CODES, False)
        elif (state := daemon.strip().upper()) in _GOOD | _UNDER_WAY:
            known[NOT_READY] = state in _UNDER_WAY
        if (code := _DOMAIN.get(_status(domain))) is not None:
            known.update({each: each == code for each in (DOWN, DEGRADED)})
        return known

    def _commands(self) -> Iterator[Path]:
        return (
            path
            for root in self._roots
            for folder in _FOLDERS
            if (path := root / folder / _COMMAND).is_file()
        )

    def _answer(self, command: Path, *options: str) -> str:
        """Empty where it fails, which is said as it changes."""
        try:
            ended = subprocess.run(
                [command, *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self._say(f"IMEX is not watched: {command} does not answer within {LIMIT_S:g} s")
            return ""
        except OSError as error:
            self._say(f"IMEX is not watched: {command}: {error.strerror}")
            return ""
        return ended.stdout.decode(errors="replace")

    def _say(self, what: str) -> None:
        if what != self._said:
            self._said = what
            print(what, file=sys.stderr, flush=True)


def _status(answer: str) -> str:
    try:
        return _decoder.decode(answer).status.upper()
    except msgspec.DecodeError:
        return ""
