"""What is kept of a run that hangs: bounded, in time, and without harm where the run is to go on."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.job.session.values import ProcessId
from nodeagent.job.shell import procfs
from nodeagent.job.shell.state_folder import StateFolder, open_given
from nodeagent.job.watching import evidence
from nodeagent.job.watching.evidence import EvidenceRequest
from tests.job.shell.supervised import lives
from tests.waiting import WAIT_LIMIT_S, wait_until

HUNG = "import faulthandler, sys, time; faulthandler.enable(); print('ready', flush=True); time.sleep(600)"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateFolder]:
    opened = open_given(tmp_path / "state", {})
    yield opened
    opened.close()


@pytest.fixture
def rank(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A Python program that waits, and prints its stack at SIGABRT."""
    program = subprocess.Popen(
        [sys.executable, "-c", HUNG], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert program.stdout is not None
    program.stdout.readline()
    yield program
    program.kill()
    program.communicate(timeout=WAIT_LIMIT_S)


def process(pid: int) -> ProcessId:
    found = procfs.stat(pid)
    assert found is not None
    return found.process


def gathered(state: StateFolder, wanted: EvidenceRequest) -> evidence.EvidenceProcess:
    gathering = evidence.begin_gathering(state, wanted)
    assert os.waitpid(gathering.pid, 0) == (gathering.pid, 0)
    return gathering


def wanted(rank: ProcessId, samples: tuple[Path, ...] = (), *, aborts: bool = False) -> EvidenceRequest:
    return EvidenceRequest(run=3, members=[rank], ranks=[rank], aborts=aborts, samples=samples, within_s=10.0)


def test_status_and_threads_of_each_process_are_kept(
    state: StateFolder, rank: "subprocess.Popen[bytes]"
) -> None:
    gathering = gathered(state, wanted(process(rank.pid)))

    text = (gathering.folder / "processes.txt").read_text()
    assert gathering.folder == state.folder / "run-3" / "hang" / "1"
    assert text.startswith(f"== {rank.pid} {sys.executable} -c import faulthandler")
    assert f"\nPid:\t{rank.pid}\n" in text
    assert f"\nthread {rank.pid} " in text
    assert lives(rank.pid)


def test_ranks_are_sent_what_ends_them_only_where_the_run_is_to_end(
    state: StateFolder, rank: "subprocess.Popen[bytes]"
) -> None:
    gathered(state, wanted(process(rank.pid)))
    assert lives(rank.pid)

    gathered(state, wanted(process(rank.pid), aborts=True))

    assert rank.wait(WAIT_LIMIT_S) == -signal.SIGABRT


def test_process_that_does_not_catch_it_is_sent_nothing(state: StateFolder) -> None:
    """It would only die of it, and print nothing."""
    sleeper = subprocess.Popen(["sleep", "600"])
    gathered(state, wanted(process(sleeper.pid), aborts=True))

    assert lives(sleeper.pid)
    sleeper.kill()
    sleeper.wait(WAIT_LIMIT_S)


def test_newest_samples_are_kept_under_their_header(
    state: StateFolder, tmp_path: Path, rank: "subprocess.Popen[bytes]"
) -> None:
    header = json.dumps({"name": "live"}) + "\n"
    row = json.dumps({"t_s": 1, "filler": "x" * 1000}) + "\n"
    older, newer = tmp_path / "older", tmp_path / "newer"
    older.write_text(header + row * 10_000)
    newer.write_text(header + row.replace("1", "2", 1) * 10)

    gathering = gathered(state, wanted(process(rank.pid), (older, newer)))

    kept = (gathering.folder / "samples.jsonl").read_text().splitlines(keepends=True)
    assert kept[0] == header
    assert [json.loads(line)["t_s"] for line in kept[-11:]] == [1, *[2] * 10]
    assert (gathering.folder / "samples.jsonl").stat().st_size <= 6 << 20


def test_digest_is_of_all_that_lies_there(state: StateFolder, rank: "subprocess.Popen[bytes]") -> None:
    gathering = gathered(state, wanted(process(rank.pid)))
    whole = hashlib.sha256()
    for file in sorted(gathering.folder.iterdir()):
        if file.name != "digest":
            whole.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())

    assert gathering.digest() == whole.hexdigest()


def test_only_the_newest_are_kept(state: StateFolder, rank: "subprocess.Popen[bytes]") -> None:
    home = state.run(1) / "hang"
    for number in range(1, 31):
        folder = home / str(number)
        folder.mkdir(parents=True)
        (folder / "processes.txt").write_text("old")
        os.utime(folder, (number, number))

    gathered(state, wanted(process(rank.pid)))

    assert sorted(int(each.name) for each in home.iterdir()) == list(range(12, 31))
    assert [each.name for each in (state.folder / "run-3" / "hang").iterdir()] == ["1"]


def test_they_take_at_most_their_room(state: StateFolder, rank: "subprocess.Popen[bytes]") -> None:
    home = state.run(1) / "hang"
    for number in range(1, 5):
        folder = home / str(number)
        folder.mkdir(parents=True)
        (folder / "samples.jsonl").write_bytes(bytes(5 << 20))
        os.utime(folder, (number, number))

    gathered(state, wanted(process(rank.pid)))

    size = sum(each.stat().st_size for each in state.folder.rglob("*") if each.is_file())
    assert [each.name for each in home.iterdir()] == ["4"]
    assert size <= evidence.MAX_BYTES


def test_aide_that_takes_too_long_is_ended_with_what_it_has_started(
    state: StateFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: "subprocess.Popen[bytes]"
) -> None:
    """A py-spy that never answers and started a child that never ends."""
    spy = tmp_path / "bin" / "py-spy"
    spy.parent.mkdir()
    spy.write_text(f"#!/bin/sh\nsleep 600 & echo $! > {tmp_path}/pid; wait\n")
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{spy.parent}:{os.environ['PATH']}")

    gathering = evidence.begin_gathering(state, wanted(process(rank.pid)))
    wait_until((tmp_path / "pid").exists, "py-spy runs")
    wait_until((tmp_path / "pid").read_text, "and has a child")
    gathering.end()

    assert os.waitpid(gathering.pid, 0)[1] == signal.SIGKILL
    child = int((tmp_path / "pid").read_text())
    wait_until(lambda: not lives(child), "the child has ended")
    assert gathering.digest() == ""
