"""Asks the daemon, and where none answers its store, with what systemd and the kernel report of the daemon.

For commands that only read. A person at a terminal waits three seconds, a program as long as the API allows.
A daemon that does not answer for a second is reported meanwhile. It takes no order, and follows nothing.
"""

import os
import socket as sockets
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.shared import connection
from nodeagent.cli.shared.connection import Reader, Unreachable
from nodeagent.cli.shared.errors import EXIT_NOT_ALLOWED, EXIT_UNAVAILABLE, CommandFailure
from nodeagent.cli.shared.options import Command, configured_folders, query_socket, read_config
from nodeagent.cli.shared.output import note, on_terminal
from nodeagent.cli.shared.texts import age, present, without_age
from nodeagent.client.calls import CALL_TIMEOUT_S

if TYPE_CHECKING:
    from nodeagent.cli.ask.stored_node import StoredNode
    from nodeagent.config.config import Config

T = TypeVar("T")

AT_A_TERMINAL_S: Final = 3.0
REPORTED_AFTER_S: Final = 1.0
_SYSTEMD_LIMIT_S: Final = 1.0
_UNIT: Final = "nodeagent.service"
_REPAIR: Final = (
    "a damaged store is repaired by the daemon at its start, which keeps the damaged file and reports"
    ' store_damaged; meanwhile "nodeagent scan" reads the devices without a daemon'
)
_STATES: Final[Mapping[str, str]] = {
    "T": "was stopped by a signal; kill -CONT lets it go on",
    "t": "is stopped by a debugger",
    "D": "waits in the kernel for a disk or a driver",
    "R": "is busy",
    "Z": "has ended and was not collected",
}
"""States of a process that explain why it does not answer (proc_pid_stat(5))."""


def timeout_option(command: Command) -> Command:
    """``timeout_s``, to be given to ``read``."""
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0.1, max=3600.0),
        metavar="SECONDS",
        help=f"How long to wait for the daemon. Default: {AT_A_TERMINAL_S:g} at a terminal, else"
        f" {CALL_TIMEOUT_S:g}.",
    )(command)


def read(
    socket: Path | None,
    config_path: Path | None,
    timeout_s: float | None,
    ask: Callable[[Reader], T],
    show: Callable[[T], None],
) -> None:
    """Show what ``ask`` makes of the daemon's answers, or of those from its store.

    Raises ``CommandFailure``: the daemon refuses, or neither it nor its store can be read. What is from the
    store ends with the exit status of a daemon that cannot be asked: no program takes it for the present.
    """
    path = query_socket(socket, config_path)
    limit_s = patience_s(timeout_s)
    try:
        with asked(path, limit_s) as daemon:
            answer = ask(daemon)
    except Unreachable as error:
        if error.exit_code == EXIT_NOT_ALLOWED:
            raise
        config = _its_config(path, config_path)
        for line in _what_is_known(error, path, config):
            note(f"nodeagent: {line}")
        stored = None if config is None else _stored_node(config)
        if stored is None:
            raise SystemExit(EXIT_UNAVAILABLE) from error
        as_of = Timestamp()
        as_of.FromNanoseconds(stored.as_of_ns)
        of = without_age(as_of)
        note(f"nodeagent: this is from its store, as of {of}, {age(as_of, present())} ago")
        with connection.explained(path, limit_s):
            show(ask(stored))
        raise SystemExit(EXIT_UNAVAILABLE) from error
    show(answer)


def patience_s(timeout_s: float | None) -> float:
    """How long to wait for the daemon: as the caller wants, else as long as suits a person or a program."""
    return timeout_s or (AT_A_TERMINAL_S if on_terminal() else CALL_TIMEOUT_S)


@contextmanager
def asked(path: Path, limit_s: float) -> Iterator[Reader]:
    """The daemon; one that is silent for a second is reported. Raises as ``connection.opened``."""
    with _reported_while_silent(path, limit_s), connection.opened(path, limit_s) as daemon:
        yield daemon


@contextmanager
def _reported_while_silent(path: Path, limit_s: float) -> Iterator[None]:
    def report() -> None:
        of_process = "".join(f"; {line}" for line in _process_line(path))
        note(f"nodeagent: no answer yet, waiting up to {limit_s:g} s{of_process}")

    timer = threading.Timer(REPORTED_AFTER_S, report)
    timer.daemon = True
    if limit_s > REPORTED_AFTER_S:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _its_config(path: Path, config_path: Path | None) -> "Config | None":
    """None where the socket is not that of the configured daemon, or the configuration is wrong: reported."""
    try:
        config = read_config(config_path)
    except CommandFailure as error:
        note(f"nodeagent: the store cannot be read either: {error}")
        return None
    return config if os.fspath(path) in (config.agent.socket, config.agent.control_socket) else None


def _stored_node(config: "Config") -> "StoredNode | None":
    """None where the store cannot be read: reported."""
    agent = config.agent
    if not Path(agent.state_dir).is_dir():
        note(
            f"nodeagent: there is no store either: {agent.state_dir} is not there; no daemon has run here yet"
        )
        return None
    if not os.access(agent.state_dir, os.R_OK | os.X_OK):
        note(f"nodeagent: its store in {agent.state_dir} is not open to you: run as root to read it")
        return None
    from nodeagent.cli.ask.self_check import StoreUnusable, read_stored_state
    from nodeagent.cli.ask.stored_node import StoredNode
    from nodeagent.tables.load import TablesError, load_catalog

    try:
        catalog = load_catalog(configured_folders(config), config.settings()).catalog
        last = read_stored_state(agent, {catalog.digest: catalog}, lambda: catalog)
    except (TablesError, StoreUnusable) as error:
        note(f"nodeagent: the store cannot be read either: {error}")
        if isinstance(error, StoreUnusable):
            note(f"nodeagent: {_REPAIR}")
        return None
    return None if last is None else StoredNode(last, catalog, agent.name())


def _what_is_known(error: Unreachable, path: Path, config: "Config | None") -> Iterator[str]:
    """Why no daemon answers, as this command, the kernel and systemd see it."""
    of_process = list(_process_line(path))
    starting = [] if config is None or of_process else list(_starting_line(Path(config.agent.state_dir)))
    yield from starting or [error.message]
    yield from of_process
    yield from _service_line()


def _starting_line(state_dir: Path) -> Iterator[str]:
    """Of a daemon that has its store open, and no socket yet."""
    from nodeagent.system.locks import flock_holder

    pid = flock_holder(state_dir)
    if pid is not None:
        state = "".join(f"; it {text}" for text in _state_of(pid))
        yield f"the daemon, process {pid}, has its store open and does not listen: it starts or ends{state}"


def listening_process(path: Path) -> int:
    """The pid of the process that listens at a socket. Raises ``OSError`` where none does."""
    from nodeagent.api.access.credentials import UCRED

    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        probe.settimeout(_SYSTEMD_LIMIT_S)
        probe.connect(os.fspath(path))
        pid, _, _ = UCRED.unpack(probe.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, UCRED.size))
    return int(pid)


def _process_line(path: Path) -> Iterator[str]:
    """What the kernel shows of the process that listens, where that explains anything."""
    try:
        pid = listening_process(path)
    except OSError:
        return
    for text in _state_of(pid):
        yield f"the daemon, process {pid}, {text}"


def _state_of(pid: int) -> Iterator[str]:
    from nodeagent.system.processes import STATE, stat_of

    try:
        state = stat_of(Path(f"/proc/{pid}"))[1][STATE]
    except OSError:
        return
    if state in _STATES:
        yield _STATES[state]


def _service_line() -> Iterator[str]:
    """What systemd reports of the service, where there is one."""
    properties = "LoadState,ActiveState,SubState,Result,StateChangeTimestamp"
    command = ["systemctl", "show", _UNIT, f"--property={properties}"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=_SYSTEMD_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return
    values = dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)
    if values.get("LoadState") == "loaded":
        result = values.get("Result", "success")
        why = "" if result == "success" else f", result {result}"
        yield (
            f"systemd: {_UNIT} is {values.get('ActiveState')} ({values.get('SubState')}){why}"
            f" since {values.get('StateChangeTimestamp') or 'its boot'}; journalctl -u {_UNIT}"
        )
