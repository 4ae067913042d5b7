"""packaging/examples/slurm/train.sbatch, submitted as it is to a real cluster: each status that asks for it
queues the job again, and one output has the lines of every placement.
"""

import os
import re
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.slurm.cluster import HAS_CGROUPS, Cluster, cluster
from tests.slurm.hooks import HOOKS, claimed, gres, hooked
from tests.slurm.node import Bridged, bridged
from tests.slurm.stepping import SOCKET_OF_NODE

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not HAS_CGROUPS, reason="cgroups' first version is not mounted: steps have no groups"),
]

SCRIPT: Final = HOOKS / "train.sbatch"

PROGRAM: Final = """\
import os, time
placement, run = os.environ["MA_SCHEDULE_CNT"], os.environ["MA_PROC_START_CNT"]
print(f"placement {placement} run {run} on {os.environ['SLURMD_NODENAME']}", flush=True)
if placement == "1":
    time.sleep(1000)
raise SystemExit(placement == "2")
"""
"""Runs until it is ended, then fails, then is done: by the placement."""


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Cluster]:
    prolog = tmp_path / "task-prolog"
    prolog.write_text(SOCKET_OF_NODE.format(folder=tmp_path))
    prolog.chmod(0o755)
    settings = {
        **hooked(tmp_path, NODEAGENT_CHIPS="gpu=npu npu=npu"),
        "RequeueExit": "75,86",
        "KillWait": "60",
        "GresTypes": "gpu",
        "TaskProlog": str(prolog),
        # A job that is queued again is looked at each second, not each minute.
        "SchedulerParameters": "batch_sched_delay=0,sched_min_interval=0,sched_interval=1",
    }
    devices = gres(tmp_path)["gres.conf"].splitlines()[0].removeprefix("Name=npu")
    with cluster(
        tmp_path / "slurm",
        nodes=("n1", "n2"),
        settings=settings,
        of_nodes="Gres=gpu:8",
        files={"gres.conf": f"Name=gpu{devices}\n"},
    ) as made:
        yield made


@pytest.fixture
async def n1(tmp_path: Path, slurm: Cluster) -> AsyncIterator[Bridged]:
    sections = ("[jobs]", 'leave_after = "slurm"', f'socket = "{tmp_path}/n1.sock"')
    async with bridged(tmp_path / "n1", slurm, "n1", sections=sections) as node:
        yield node


async def test_a_faulty_chip_and_a_failure_queue_it_again(slurm: Cluster, n1: Bridged) -> None:
    (slurm.folder / "train.py").write_text(PROGRAM)
    await n1.start()
    await n1.acknowledged()
    out = slurm.run("sbatch", "--parsable", SCRIPT, PATH=f"{sys.prefix}/bin:{os.environ['PATH']}")
    job = int(out)

    def output() -> str:
        file = slurm.folder / f"train-{job}.out"
        return file.read_text() if file.exists() else ""

    await n1.comes(lambda: "placement 1 run 1 on n1" in output(), f"the first placement\n{output()}")
    await claimed(n1, {f"npu{number}": [f"slurm:{job}"] for number in range(8)})
    n1.fail("npu1")
    await n1.comes(lambda: slurm.job(job)["JobState"] == "COMPLETED", f"the end\n{output()}")

    left = re.findall(r"leaves with status (\d+)", output())
    runs = re.findall(r"^placement (\d) run (\d) on (n\d)$", output(), re.MULTILINE)
    tried = [("2", f"{run}", "n2") for run in range(1, 5)]
    assert (runs, left) == ([("1", "1", "n1"), *tried, ("3", "1", "n2")], ["86", "75"])
    assert slurm.job(job)["Restarts"] == "2"
