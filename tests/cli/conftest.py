"""The commands as users run them, and small tables and files to run them on."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nodeagent.cli.main import main
from tests.forked.forks import COMMAND

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> list[Any]:
        """Of each line of the output."""
        return [json.loads(line) for line in self.out.splitlines()]


REPLAYED = re.compile(
    r".*: (\d+) lines? read, (\d+) kernel messages? understood, (\d+) of others, (\d+) not understood"
    r"(?: \(first: line (\d+)\))?, (\d+) faults? found"
)
"""The last line of a replay on standard error."""

Nodeagent = Callable[..., Ran]
Replay = Callable[..., Ran]


@pytest.fixture(autouse=True)
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkout's tables, and sockets at which nobody listens. Orders are given in the name of alice."""
    path = tmp_path / "nodeagent.toml"
    path.write_text(
        f"""
[agent]
socket = "{tmp_path}/n.sock"
control_socket = "{tmp_path}/c.sock"
tables = ["{ROOT}/fault_codes"]
"""
    )
    for name in [name for name in os.environ if name.startswith("NODEAGENT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NODEAGENT_CONFIG", str(path))
    monkeypatch.setenv("NODEAGENT_OWNER", "alice")
    return path


@pytest.fixture
def nodeagent() -> Nodeagent:
    """Runs a command in this process."""

    def run(*arguments: str | Path) -> Ran:
        result = CliRunner().invoke(main, list(map(str, arguments)), prog_name="nodeagent")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def nodeagent_process() -> Nodeagent:
    """Runs a command as a process of its own."""

    def run(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> Ran:
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


def events_of(ran: Ran) -> list[str]:
    """Each event in few words: the time of day, what, where, which, how bad, and what follows.

    A replay says on standard error how much it understood; anything else there is an error.
    """
    said = ran.err.splitlines()
    errors = [line for line in said if not line.startswith("note: ") and not REPLAYED.fullmatch(line)]
    assert (ran.status, errors) == (0, [])
    return [
        " ".join(
            [
                event["at"].removeprefix("2026-01-02T"),
                event["kind"],
                event["device"],
                event["code"],
                event["condition_level"] or "-",
                event["verdict"],
                event["handling"],
            ]
        )
        for event in ran.json
    ]


def signal(at: str, device: str, code: str, assertion: str = "occur", **more: object) -> str:
    """A line of a signal file; ``at`` is a time of 2 January 2026."""
    line = {"at": f"2026-01-02T{at}Z", "source": "ascend", "device": device, "code": code}
    return json.dumps({**line, "assertion": assertion, **more})


def advance(at: str) -> str:
    return json.dumps({"at": f"2026-01-02T{at}Z", "advance": True})


def moved(line: str, at: str) -> str:
    """The line of a signal file at another time, of any day."""
    return json.dumps({**json.loads(line), "at": at})


@pytest.fixture
def replay(nodeagent: Nodeagent, tmp_path: Path) -> Replay:
    """Replays lines under the shipped tables, or with others laid over them."""

    def run(lines: Sequence[str], tables: str = "", *options: str | Path) -> Ran:
        file = tmp_path / "replayed"
        file.write_text("".join(f"{line}\n" for line in lines))
        if tables:
            folder = tmp_path / "tables"
            folder.mkdir(exist_ok=True)
            (folder / "own.toml").write_text(tables)
            options = ("--tables", folder, *options)
        return nodeagent("replay", file, "-o", "json", *options)

    return run
