"""A job of torchrun, as people run them, below the supervisor: what torch does there, and what not.

The tests need a Python that has torch: this one, or the one that NODEAGENT_TORCH_PYTHON names.
"""

import asyncio
import importlib.util
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.harness.configuration import ROOT
from tests.waiting import WAIT_LIMIT_S, until

_HERE: Final = sys.executable if importlib.util.find_spec("torch") else ""
PYTHON: Final = os.environ.get("NODEAGENT_TORCH_PYTHON", _HERE)
TRAIN: Final = ROOT / "packaging" / "examples" / "jobs" / "torch_train.py"
CHECKPOINT_EVERY: Final = 5
_RANK: Final = re.compile(r"^rank (\d+), pid (\d+), run (\d+): from step (\d+)$", re.MULTILINE)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="needs torch: set NODEAGENT_TORCH_PYTHON to a Python that has it"),
]


@dataclass
class Torch:
    folder: Path
    process: asyncio.subprocess.Process

    @property
    def out(self) -> str:
        return (self.folder / "out").read_text()

    def ranks(self, run: int) -> dict[int, tuple[int, int]]:
        """(pid, step from which it goes on) by rank, of those of the run that have said so."""
        found = (tuple(map(int, each)) for each in _RANK.findall(self.out))
        return {rank: (pid, step) for rank, pid, its_run, step in found if its_run == run}

    def newest(self) -> int:
        return max((int(each.stem[-6:]) for each in self.folder.glob("c/checkpoint-*")), default=0)

    async def trains(self, run: int) -> dict[int, tuple[int, int]]:
        """Once both ranks are there and a checkpoint was written since they began."""
        await self.comes(lambda: len(self.ranks(run)) == 2, f"run {run}")
        ranks = self.ranks(run)
        await self.comes(lambda: self.newest() > ranks[0][1], f"a checkpoint of run {run}")
        return ranks

    async def comes(self, found: Callable[[], object], what: str) -> None:
        try:
            await until(found, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.out[-1000:]}\n{self.err[-3000:]}") from None

    @property
    def err(self) -> str:
        return (self.folder / "err").read_text()

    async def status(self) -> int:
        async with asyncio.timeout(WAIT_LIMIT_S):
            return await self.process.wait()


@asynccontextmanager
async def supervised(
    folder: Path, *policy: str, ranks: int = 2, step_s: float = 0.02
) -> AsyncIterator[Torch]:
    """Without a daemon. What is left of it at the end is ended."""
    supervisor: tuple[str | Path, ...] = (
        sys.executable,
        "-m",
        "nodeagent.job",
        "run",
        "--state",
        folder / "state",
        *policy,
        "--",
    )
    torchrun = (PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
    words: tuple[str | Path, ...] = (
        TRAIN,
        "--checkpoints",
        folder / "c",
        "--step-time",
        str(step_s),
        "--every",
        str(CHECKPOINT_EVERY),
        "--steps",
        "100000",
    )
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = await asyncio.create_subprocess_exec(
            *supervisor,
            *torchrun,
            *words,
            env={**os.environ, "PYTHONPATH": str(ROOT), "NODEAGENT_JOBS_SOCKET": str(folder / "none.sock")},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
    job = Torch(folder, process)
    try:
        yield job
    finally:
        if process.returncode is None:
            process.terminate()
            await job.status()


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_a_rank_that_is_killed_costs_a_retry_and_the_next_run_goes_on_from_the_checkpoint(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path, "--in-place-retries", "2") as job:
        first = await job.trains(1)
        os.kill(first[1][0], signal.SIGKILL)
        second = await job.trains(2)

    assert second[0][1] == second[1][1]
    assert second[0][1] >= 5
    assert not lives(first[0][0])


async def test_the_schedulers_signal_ends_launcher_and_ranks_and_nothing_runs_again(tmp_path: Path) -> None:
    async with supervised(tmp_path, "--in-place-retries", "2") as job:
        first = await job.trains(1)
        job.process.terminate()
        assert await job.status() == 128 + signal.SIGTERM

    assert [lives(pid) for pid, _ in first.values()] == [False, False]
    assert job.ranks(2) == {}


async def test_one_rank_that_sleeps_holds_up_the_other_and_both_are_ended_all_the_same(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path, "--grace", "1s", "--in-place-retries", "2") as job:
        first = await job.trains(1)
        (tmp_path / "c" / "orders").write_text("1 hang\n")
        while not await stands_still(job):
            assert job.process.returncode is None
        job.process.terminate()
        assert await job.status() == 128 + signal.SIGTERM

    assert [lives(pid) for pid, _ in first.values()] == [False, False]


async def stands_still(job: Torch) -> bool:
    """For as long as fifty steps took."""
    before = job.newest()
    await asyncio.sleep(1)
    return job.newest() == before


async def test_a_hang_is_found_by_late_beats_its_stacks_are_kept_and_the_command_runs_again(
    tmp_path: Path,
) -> None:
    quick = ("--hang", "restart", "--hang-time", "10s", "--period", "0.2", "--grace", "1s")
    async with supervised(tmp_path, *quick) as job:
        first = await job.trains(1)
        (tmp_path / "c" / "orders").write_text("1 hang\n")
        while not await stands_still(job):
            assert job.process.returncode is None
        (tmp_path / "c" / "orders").unlink()
        second = await job.trains(2)

    assert [lives(pid) for pid, _ in first.values()] == [False, False]
    assert second[0][1] >= 5
    assert re.search(r'torch_train\.py", line \d+ in obey', job.err + evidence(tmp_path))


def evidence(folder: Path) -> str:
    """Everything that was gathered of the hang of the first run."""
    (hang,) = folder.glob("state/**/run-1/hang")
    return "\n".join(path.read_text(errors="replace") for path in sorted(hang.rglob("*")) if path.is_file())


async def test_a_rank_at_half_the_speed_is_named_within_ten_steps(tmp_path: Path) -> None:
    async with supervised(tmp_path, "--period", "1", ranks=4, step_s=0.8) as job:
        await job.comes(lambda: len(job.ranks(1)) == 4, "its ranks")
        began = job.newest()
        (tmp_path / "c" / "orders").write_text("2 slow\n")
        await job.comes(lambda: "rank 2 (pid" in job.err, "the slow rank")
        pid, _ = job.ranks(1)[2]
        (line,) = [each for each in job.err.splitlines() if "holds up its peers" in each]
        newest = job.newest()

    assert line.startswith(f"nodeagent-job: run 1: rank 2 (pid {pid}) holds up its peers: it takes ")
    assert newest - began <= 10 + CHECKPOINT_EVERY
