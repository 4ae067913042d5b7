"""Texts of an archive that no command prints: why, the store's files, the daemon's process, its metrics.

Each runs in a process of its own that ends if it hangs. Values of the environment are given only for names
that are known to hold no secret.
"""

import http.client
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from nodeagent.cli.bundle.sources import DAEMON_LIMIT_S, BundledNode

_ENDPOINT_LIMIT_S: Final = 5.0
_PUBLIC_VARIABLES: Final = ("NODEAGENT_", "LD_LIBRARY_PATH", "PATH", "LANG", "LC_", "TZ", "PYTHON", "MALLOC_")
_SHOWN_OF_A_PROCESS: Final = ("status", "limits", "cgroup", "wchan", "stack", "oom_score_adj")


def why(node: BundledNode) -> Iterator[str]:
    """One JSON object a device that takes no work or is not observed, as ``nodeagent why`` prints it."""
    from nodeagent.cli.ask.reading import read
    from nodeagent.cli.shared import json_forms
    from nodeagent.cli.shared.connection import Reader
    from nodeagent.cli.shared.output import json_line
    from nodeagent.messages.pb import fault_service_pb2 as pb
    from nodeagent.messages.pb import types_pb2

    answers: list[pb.WhyDeviceResponse] = []

    def ask(daemon: Reader) -> list[pb.WhyDeviceResponse]:
        devices = daemon.call(pb.ListDevicesRequest()).devices
        unwell = [each for each in devices if each.reasons or each.verdict != types_pb2.VERDICT_ALLOW]
        return [daemon.call(pb.WhyDeviceRequest(device=each.name)) for each in unwell]

    with suppress(SystemExit):  # it is from the store, as standard error reports
        read(None, node.config_path, DAEMON_LIMIT_S, ask, answers.extend)
    for answer in answers:
        form = {
            "device": json_forms.form(answer.device),
            "contributions": [json_forms.form(each) for each in answer.contributions],
            "seq": answer.seq,
        }
        yield json_line(form).decode().rstrip("\n")


def store(node: BundledNode) -> Iterator[str]:
    """The files with mode, owner, size and time, and what SQLite finds of the store."""
    from nodeagent.replay import store_file
    from nodeagent.replay.reading import ReplayError
    from nodeagent.store import queries
    from nodeagent.store.disk.opening import FILE_NAME
    from nodeagent.store.errors import StoreDamagedError

    for folder in (node.state_dir, node.record_dir):
        yield f"{folder}:"
        yield from _listed(folder)
    try:
        with store_file.opened(node.state_dir / FILE_NAME) as connection:
            state = queries.read_state(connection)
            yield f"store id {state.store_id}, events {state.oldest_seq} to {state.last.seq}"
            yield f"inputs to {state.last.input}, base at {state.base_input}; audit to {state.last.audit}"
            checked = connection.execute("PRAGMA quick_check(20)").fetchall()
            yield f"quick_check: {'; '.join(str(row[0]) for row in checked)}"
    except ReplayError as error:
        yield from (f"{each.file}: {each.reason}" for each in error.problems)
    except StoreDamagedError as error:
        yield f"damaged: {error}"


def _listed(folder: Path) -> Iterator[str]:
    try:
        found = sorted(folder.iterdir())
    except OSError as error:
        yield f"  cannot be listed: {error.strerror}"
        return
    for path in found:
        try:
            file = path.lstat()
        except OSError as error:
            yield f"  {path.name}: {error.strerror}"
            continue
        at = datetime.fromtimestamp(file.st_mtime, UTC).isoformat(timespec="seconds")
        owner = f"{file.st_uid}:{file.st_gid}"
        yield f"  {stat.filemode(file.st_mode)} {owner:>9} {file.st_size:>12} {at} {path.name}"


def metrics(node: BundledNode) -> Iterator[str]:
    """Raises ``OSError`` and ``http.client.HTTPException``."""
    host, _, port = node.metrics.listen.rpartition(":")
    if not port:
        yield "# metrics.listen is empty: none are served"
        return
    host = {"": "localhost", "0.0.0.0": "127.0.0.1", "[::]": "::1"}.get(host, host.strip("[]"))
    endpoint = http.client.HTTPConnection(host, int(port), timeout=_ENDPOINT_LIMIT_S)
    endpoint.request("GET", "/metrics")
    answer = endpoint.getresponse()
    if answer.status != http.HTTPStatus.OK:
        yield f"# status {answer.status} {answer.reason}"
    yield answer.read().decode(errors="replace").rstrip("\n")


def process(node: BundledNode) -> Iterator[str]:
    """Of the process that listens at the daemon's socket."""
    from nodeagent.cli.ask.reading import listening_process

    try:
        pid = listening_process(Path(node.agent.socket))
    except OSError as error:
        yield f"no process listens at {node.agent.socket}: {error.strerror}"
        return
    folder = Path(f"/proc/{pid}")
    yield f"process {pid}"
    for name in _SHOWN_OF_A_PROCESS:
        yield f"== {name}"
        yield _read(folder / name)
    yield "== threads: id, state and name, and what of the kernel it waits in"
    yield from map(_task, _numbered(folder / "task"))
    yield "== its children, which are workers"
    for child in _read(folder / "task" / str(pid) / "children").split():
        yield _task(Path("/proc") / child)
    yield "== environment: names, and values of those that hold no secret"
    for variable in sorted(_read(folder / "environ").split("\0")):
        name, _, value = variable.partition("=")
        if name:
            yield f"{name}={value}" if name.startswith(_PUBLIC_VARIABLES) else name


def _numbered(folder: Path) -> list[Path]:
    return sorted(folder.iterdir(), key=lambda each: int(each.name))


def _task(folder: Path) -> str:
    status = dict(line.partition(":")[::2] for line in _read(folder / "status").splitlines())
    state, name = status.get("State", "?").strip(), status.get("Name", "?").strip()
    return f"{folder.name} {state} {name} {_read(folder / 'wchan')}"


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").rstrip("\n")
    except OSError as error:
        return f"cannot be read: {error.strerror}"
