"""Processes in a folder that stands for /proc."""

from pathlib import Path

SLURM = "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n"


def process(procfs: Path, pid: int, *, command: str = "python3", start_time: int = 4711) -> Path:
    folder = procfs / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stat").write_text(f"{pid} ({command}) S 1 {'0 ' * 17}{start_time} 0 0\n")
    if not (folder / "cgroup").exists():
        (folder / "cgroup").write_text(SLURM)
    return folder
