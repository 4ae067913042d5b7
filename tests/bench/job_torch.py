"""A rank of a torchrun job is killed: how long until the next run makes a step, by who starts it again.

It needs a Python with torch, which NODEAGENT_TORCH_PYTHON names. Most of the time is torch's own start.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.job_run import environment, job_run
from tests.bench.shared import processes
from tests.bench.shared.daemon import ROOT, scratch
from tests.bench.shared.figures import Figure, median, spread

TITLE = "a torchrun job goes on after a rank was killed"
ROUNDS = 3
BUDGET_ADDED_S = 1.5
WAIT_LIMIT_S = 120.0
_RANK = re.compile(r"^rank 1, pid (\d+), ", re.MULTILINE)


def run() -> Iterator[Figure]:
    python = os.environ.get("NODEAGENT_TORCH_PYTHON", "")
    if not python:
        return
    bare = [_took_s(python, within=("sh", "-c", 'until "$@"; do :; done', "sh")) for _ in range(ROUNDS)]
    torch = [_took_s(python, launcher=("--max-restarts", "3")) for _ in range(ROUNDS)]
    ours = [_took_s(python, supervised=True) for _ in range(ROUNDS)]
    yield Figure(
        name="kill to first step, `job run`, beyond a loop of the shell",
        value=median(ours) - median(bare),
        unit="s",
        budget=BUDGET_ADDED_S,
        note=f"{median(ours):.2f} {spread(ours)}, the loop {median(bare):.2f} {spread(bare)}",
    )
    yield Figure(
        name="kill to first step, `job run`",
        value=median(ours),
        unit="s",
        peer=median(torch),
        peer_name="torchrun --max-restarts",
        note=spread(torch),
    )


def _took_s(
    python: str, *, within: Sequence[str] = (), launcher: Sequence[str] = (), supervised: bool = False
) -> float:
    with scratch() as folder:
        torchrun = (python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *launcher)
        train = (str(ROOT / "packaging/examples/jobs/torch_train.py"), "--checkpoints", str(folder / "c"))
        pace = ("--step-time", "0.01", "--every", "1", "--steps", "1000000")
        before = (
            (*job_run(folder), "--in-place-retries", "1", "--verdict-wait", "0s", "--")
            if supervised
            else within
        )
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            job = subprocess.Popen(
                [*before, *torchrun, *train, *pace],
                env=environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        try:
            (first,) = _ranks(folder, 1)
            _checkpoint_after(folder, time.time())
            os.kill(first, signal.SIGKILL)
            begun_s = time.time()
            _ranks(folder, 2)
            return _checkpoint_after(folder, _newest_s(folder)) - begun_s
        finally:
            for pid in processes.tree(job.pid):
                os.kill(pid, signal.SIGKILL)
            job.wait()


def _ranks(folder: Path, runs: int) -> list[int]:
    """The pid of rank 1 in each run, once there are so many."""
    end_s = time.monotonic() + WAIT_LIMIT_S
    while len(found := _RANK.findall((folder / "out").read_text())) < runs:
        if time.monotonic() > end_s:
            raise TimeoutError(f"no run {runs}:\n{(folder / 'err').read_text()[-2000:]}")
        time.sleep(0.005)
    return [int(pid) for pid in found]


def _newest_s(folder: Path) -> float:
    return max((path.stat().st_mtime for path in (folder / "c").glob("checkpoint-*")), default=0.0)


def _checkpoint_after(folder: Path, after_s: float) -> float:
    """When the first one was written that is newer."""
    end_s = time.monotonic() + WAIT_LIMIT_S
    while (newest_s := _newest_s(folder)) <= after_s:
        if time.monotonic() > end_s:
            raise TimeoutError("no further checkpoint")
        time.sleep(0.005)
    return newest_s
