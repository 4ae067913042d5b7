"""A run that hangs, from the first sample to the next run: real processes, chips by the daemon's word."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodeagent.job.lines import ChipReading
from nodeagent.job.model import RunEvent, Wish
from tests.job.shell import daemon_double as daemons
from tests.job.shell.daemon_double import DaemonDouble
from tests.job.shell.supervised import Place, pids_in
from tests.waiting import WAIT_LIMIT_S

pytestmark = pytest.mark.slow

PERIOD_S = 0.1
OPTIONS = ("--period", str(PERIOD_S), "--hang-time", "10s", "--grace", "1s", "--in-place")

RANK = """\
import os, pathlib, sys, time
place = pathlib.Path(sys.argv[1])
with (place / "runs").open("a") as runs:
    print(os.environ["NODEAGENT_RUN"], os.environ["NODEAGENT_WHY"], file=runs)
with (place / "pids").open("a") as pids:
    print(os.getpid(), file=pids)
def train():
    with open("/dev/zero", "rb") as data:
        while not (place / "hang").exists():
            data.read(65536)
            time.sleep(0.01)
def stands_still():
    time.sleep(600)
train()
stands_still()
"""


@contextmanager
def chips_that_vary(daemon: DaemonDouble, pid: int) -> Iterator[threading.Event]:
    """One chip, held by that process, in use until the event is set; idle from then on."""
    idle, end = threading.Event(), threading.Event()

    def vary() -> None:
        turn = 0
        while not end.wait(PERIOD_S / 2):
            turn += 1
            util, power_w = (0.0, 70.0) if idle.is_set() else (80.0 + turn % 7 * 3, 300.0 + turn % 5)
            daemon.chips = (ChipReading(name="npu0", known=True, util=util, power_w=power_w),)

    daemon.holders = (pid,)
    thread = threading.Thread(target=vary)
    thread.start()
    try:
        yield idle
    finally:
        end.set()
        thread.join()


@pytest.mark.parametrize("mode", ["restart", "notify"])
def test_hang_is_found_and_told_with_its_evidence(place: Place, tmp_path: Path, mode: str) -> None:
    command = (sys.executable, "-c", RANK, str(tmp_path))
    options = (*OPTIONS, "--hang", mode, "--state", str(place.state))
    with (
        daemons.opened(place.socket) as daemon,
        (tmp_path / "stderr").open("wb") as stderr,
        place.started(*command, options=options, stderr=stderr) as supervisor,
    ):
        [pid] = pids_in(tmp_path / "pids", 1)
        with chips_that_vary(daemon, pid) as idle:
            threading.Event().wait(14)  # longer than it takes to be armed
            idle.set()
            (tmp_path / "hang").touch()

            daemon.received_word(RunEvent.SUSPECTED)
            suspended = daemon.received_word(RunEvent.SUSPENDED)

        evidence = place.state / "run-1" / "hang" / "1"
        assert suspended.evidence["path"] == str(evidence)
        assert suspended.evidence["digest"] == (evidence / "digest").read_text().strip()
        assert (evidence / "samples.jsonl").read_text().startswith('{"name":"live"')
        if mode == "notify":
            assert not (evidence / "faulthandler.txt").exists()
            assert supervisor.poll() is None
            assert pids_in(tmp_path / "pids", 1) == [pid]
            return
        stacks = (evidence / "python.txt").read_text()
        assert stacks.startswith(f"== rank ?, pid {pid}\n")
        assert "in stands_still" in stacks
        daemon.received_word(RunEvent.STOPPED)
        daemon.want(Wish.RUN, 2)
        daemon.received_word(RunEvent.STARTED)
        pids_in(tmp_path / "pids", 2)
        assert (tmp_path / "runs").read_text() == "1 first\n2 suspended\n"


def test_beats_are_progress(place: Place, tmp_path: Path) -> None:
    """Two retries in a row are spent, but each run gets further than the one before."""
    script = (
        "import os, sys, time; from nodeagent_job import beat; run = int(os.environ['NODEAGENT_RUN'])\n"
        "[(beat(step=10 * run + n), time.sleep(0.1)) for n in range(5)]\n"
        "sys.exit(run < 5 and 1)"
    )
    options = ("--in-place-retries", "1", "--verdict-wait", "0s", "--period", "0.05")

    done = place.run(sys.executable, "-c", script, options=options)

    assert done.returncode == 0
    assert done.stderr.count(b"retry 1 of 1") == 4


def test_file_with_a_number_is_progress(place: Place, tmp_path: Path) -> None:
    latest = tmp_path / "latest"
    script = f"echo $((100 * NODEAGENT_RUN)) > {latest}; sleep 0.5; [ $NODEAGENT_RUN = 4 ]"
    options = ("--in-place-retries", "1", "--verdict-wait", "0s", "--period", "0.05")

    done = place.run("sh", "-c", script, options=(*options, "--progress", str(latest)))
    without = place.run("sh", "-c", script, options=options)

    assert done.returncode == 0
    assert without.returncode == 87


def test_names_of_checkpoints_are_progress(place: Place, tmp_path: Path) -> None:
    script = f"echo x > {tmp_path}/step-$((100 * NODEAGENT_RUN)).pt; sleep 0.7; [ $NODEAGENT_RUN = 4 ]"
    options = ("--in-place-retries", "1", "--verdict-wait", "0s", "--period", "0.05")

    done = place.run("sh", "-c", script, options=(*options, "--progress", f"{tmp_path}/step-*.pt"))

    assert done.returncode == 0


STARTS = """\
import os, time
from nodeagent_job import beat
beat(step=0, phase="load")
for step in range(1, 4 if os.environ["NODEAGENT_RUN"] == "1" else 1):
    beat(step=step)
    time.sleep(0.2)
if os.environ["NODEAGENT_RUN"] == "1":
    raise SystemExit(1)
time.sleep(600)
"""


def test_run_that_hangs_at_its_start_is_ended_until_the_row_is_full(place: Place, tmp_path: Path) -> None:
    """The first run makes steps and fails; the next never makes one."""
    options = (
        "--period",
        "0.2",
        "--hang-time",
        "10s",
        "--grace",
        "0s",
        "--hang",
        "restart",
        "--hang-row",
        "1",
    )
    retries = ("--in-place-retries", "1", "--verdict-wait", "0s")

    done = place.run(sys.executable, "-c", STARTS, options=(*options, *retries))

    assert done.returncode == 87
    assert done.stderr.count(b"hangs (it has begun no work for") == 2
    assert b"it hung again after 1 restarts" in done.stderr


ONE_RUN = ("--in-place-retries", "1", "--verdict-wait", "0s")
"""A period of ten seconds: no sample is taken before these runs have ended."""


@pytest.mark.parametrize(
    ("writes", "watched"),
    [("{place}/latest", "{place}/latest"), ("{place}/step-$((100 * NODEAGENT_RUN)).pt", "{place}/step-*.pt")],
    ids=["a file", "names"],
)
def test_what_a_run_wrote_just_before_its_end_is_progress(
    place: Place, tmp_path: Path, writes: str, watched: str
) -> None:
    script = f"echo $((100 * NODEAGENT_RUN)) > {writes.format(place=tmp_path)}; [ $NODEAGENT_RUN = 4 ]"

    done = place.run("sh", "-c", script, options=(*ONE_RUN, "--progress", watched.format(place=tmp_path)))

    assert done.returncode == 0
    assert done.stderr.count(b"retry 1 of 1") == 3


def test_checkpoint_that_a_program_reports_just_before_its_end_is_progress(place: Place) -> None:
    script = (
        "import os, sys; from nodeagent_job import beat; run = int(os.environ['NODEAGENT_RUN'])\n"
        "beat(step=1, checkpoint=run); os._exit(run < 4)"
    )

    done = place.run(sys.executable, "-c", script, options=ONE_RUN)

    assert done.returncode == 0
    assert done.stderr.count(b"retry 1 of 1") == 3


def test_name_that_a_killed_run_was_writing_is_no_progress(place: Place, tmp_path: Path) -> None:
    script = f"echo x > {tmp_path}/step-$((100 * NODEAGENT_RUN)).pt; kill -9 $$"

    done = place.run("sh", "-c", script, options=(*ONE_RUN, "--progress", f"{tmp_path}/step-*.pt"))

    assert done.returncode == 87
    assert done.stderr.count(b"retry 1 of 1") == 1


def test_error_of_the_job_after_a_checkpoint_is_tried_again(place: Place, tmp_path: Path) -> None:
    """It came after progress once; the same again without any ends the job."""
    script = f"open('{tmp_path}/latest', 'w').write('7'); raise ValueError('upload')"

    options = (*ONE_RUN, "--progress", str(tmp_path / "latest"))
    with (
        (tmp_path / "stderr").open("wb") as stderr,
        place.started(sys.executable, "-c", script, options=options, stderr=stderr) as supervisor,
    ):
        assert supervisor.wait(WAIT_LIMIT_S) == 87
    text = (tmp_path / "stderr").read_text()
    assert text.count("retry 1 of 1") == 1
    assert text.endswith("leaves with status 87: an error of the job itself: ValueError: upload\n")
