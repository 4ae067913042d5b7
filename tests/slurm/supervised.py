"""The batch script of a job under ``nodeagent job run``."""

import sys
from pathlib import Path
from typing import Final

from tests.harness.configuration import ROOT

HEALS: Final = 0x80A18008
"""RestartNPU: in mode "on" its chip is reset."""

SCRIPT: Final = """
export NODEAGENT_JOBS_SOCKET="{folder}/$SLURMD_NODENAME/jobs.sock" PYTHONPATH="{root}"
echo "$SLURMD_NODENAME: schedule $MA_SCHEDULE_CNT begins"
exec {python} -m nodeagent.job run --in-place --placements 3 --grace {grace} --state {state} -- \\
    sh -c '{command}'
"""
RUNS: Final = (
    'echo "run on $SLURMD_NODENAME: MA_SCHEDULE_CNT=$MA_SCHEDULE_CNT MA_PROC_START_CNT=$MA_PROC_START_CNT";'
    " sleep 1000 & wait"
)


def script(folder: Path, command: str = RUNS, grace: str = "1s") -> str:
    return SCRIPT.format(
        folder=folder, root=ROOT, python=sys.executable, grace=grace, state=folder / "state", command=command
    )
