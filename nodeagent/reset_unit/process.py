"""The process of a reset, which outlives the daemon: it does one request once and writes the result.

    python -m nodeagent.reset_unit NAME      of a request in the folder
    python -m nodeagent.reset_unit           the name comes on standard input, from the unit's socket

It runs as root for a daemon that has few rights. It takes from a request only which devices to reset, and
why. SIGTERM, for example at a shutdown, does not interrupt it: a reset that has not reached the devices is
refused, any other is finished. The report for the vendor's support comes last, without any lock, and may be
interrupted.
"""

import argparse
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from nodeagent.config.reset import RUN_DIRECTORY
from nodeagent.reset_unit.attempt import ResetAttempt
from nodeagent.reset_unit.evidence import BugReport
from nodeagent.reset_unit.exchange.files import Locked
from nodeagent.reset_unit.exchange.requests import RequestFolder, ResetResult, is_plain, printable

LOCK_WAIT_S: Final = 2.0
NAME_LIMIT_S: Final = 2.0
MAX_NAME_BYTES: Final = 256
EXIT_USAGE: Final = 2


def main() -> None:
    """Exit status 0 once there is a result, or where there is nothing to do."""
    parser = argparse.ArgumentParser(prog="python -m nodeagent.reset_unit", description=__doc__)
    parser.add_argument("name", nargs="?", help="of the request's file, without its ending")
    parser.add_argument("--folder", type=Path, default=Path(RUN_DIRECTORY), help="where the request lies")
    parser.add_argument("--config", type=Path, help="else $NODEAGENT_CONFIG, else the daemon's usual one")
    given = parser.parse_args()
    name = _name_on_stdin() if given.name is None else given.name
    if not is_plain(name):
        print(f"{name[:MAX_NAME_BYTES]!r} is the name of no request")
        sys.exit(EXIT_USAGE)
    folder = RequestFolder(given.folder)
    try:
        with folder.locked(name, LOCK_WAIT_S), _uninterrupted() as is_to_end:
            bug_report = _do(folder, name, given.config, is_to_end)
    except Locked:
        print(f"{name}: another process is doing it")
        return
    if bug_report is not None:
        bug_report.make(print)


@contextmanager
def _uninterrupted() -> Iterator[threading.Event]:
    """Set once SIGTERM has come. What is started here is not ended by it either (KillMode= of the unit)."""
    is_to_end = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: is_to_end.set())
    try:
        yield is_to_end
    finally:
        signal.signal(signal.SIGTERM, before)


def _do(
    folder: RequestFolder, name: str, config_path: Path | None, is_to_end: threading.Event
) -> BugReport | None:
    """Under the lock of that name. What is to be done without it."""
    try:
        request = folder.begin(name)
    except (OSError, ValueError) as error:
        why = printable(f"the request cannot be used: {error}")
        print(f"{name}: {why}")
        folder.answer(name, ResetResult(state="refused", reason=why))
        return None
    if request is None:
        print(f"{name}: nothing is asked, or it was begun before")
        return None
    with ExitStack() as locks:
        attempt = ResetAttempt(request, name, folder, config_path, is_to_end)
        attempt.run(locks)
        folder.answer(name, attempt.result())
        if attempt.is_stuck:
            # The call that has not come back would be waited for; the locks last until it has.
            os._exit(0)
    return attempt.bug_report


def _name_on_stdin() -> str:
    """A line. The connection is closed then: nothing that is started here inherits it."""
    line = b""
    while b"\n" not in line and len(line) < MAX_NAME_BYTES and select.select([0], [], [], NAME_LIMIT_S)[0]:
        chunk = os.read(0, MAX_NAME_BYTES - len(line))
        if not chunk:
            break
        line += chunk
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return line.partition(b"\n")[0].decode(errors="replace")
