"""A command that is forked does what the installed script does, as a child of this process."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked.forks import COMMAND
from tests.forked.start import WORKER

SCRIPT = [str(Path(sys.executable).with_name("nodeagent"))]
TABLE = "own.toml"


@pytest.fixture
def forked(tmp_path: Path) -> subprocess.Popen[str]:
    """Refuses the table in its directory, by the configuration that its environment names."""
    return started(tmp_path, COMMAND)


def started(folder: Path, command: list[str]) -> subprocess.Popen[str]:
    (folder / "agent.toml").write_text("")
    (folder / TABLE).write_text("this is no table")
    return subprocess.Popen(
        [*command, "tables", "check", "--alone", "."],
        cwd=folder,
        env={**os.environ, "NODEAGENT_CONFIG": str(folder / "agent.toml")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_it_ends_as_the_script_does(forked: subprocess.Popen[str], tmp_path: Path) -> None:
    executed = started(tmp_path, SCRIPT)

    assert (*forked.communicate(), forked.returncode) == (*executed.communicate(), executed.returncode)
    assert forked.returncode == 1


def test_it_is_a_child_of_ours(forked: subprocess.Popen[str]) -> None:
    os.waitid(os.P_PID, forked.pid, os.WEXITED | os.WNOWAIT)
    parent = Path(f"/proc/{forked.pid}/stat").read_text().rpartition(")")[2].split()[1]

    assert parent == str(os.getpid())
    forked.communicate()


@pytest.fixture
def probing(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Has a worker, until the end of the test."""
    (tmp_path / "agent.toml").write_text("")
    command = [*COMMAND, "probe", "kmsg", "--follow", "--config", str(tmp_path / "agent.toml")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.mark.root
def test_a_worker_is_a_child_of_its_command_and_seen_as_if_it_was_executed(
    probing: subprocess.Popen[str],
) -> None:
    assert probing.stdout is not None
    probing.stdout.readline()
    listed = Path(f"/proc/{probing.pid}/task/{probing.pid}/children").read_text().split()
    shown = [Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0") for pid in listed]

    assert [os.fsencode(word) for word in (*WORKER, "kmsg")] in shown
