"""The example of a training job, which also notes each of its starts, and whether it was ever not alone.

Each of its processes has a lock of its own for as long as it lives: the kernel lets go of it, however the
process ends. One that begins while a process of another launcher has its lock notes that. It looks by a
shared lock, so that two that look at once do not take each other for that launcher.
"""

import fcntl
import importlib.util
import os
import sys
from pathlib import Path
from typing import IO

TRAIN = Path(__file__).parents[2] / "packaging" / "examples" / "jobs" / "train.py"
VARIABLES = ("NODEAGENT_RUN", "MA_PROC_START_CNT", "NODEAGENT_WHY")


def main() -> int:
    folder = Path.cwd()
    launcher = os.environ.setdefault("LONE_TRAINER", str(os.getpid()))
    with (folder / f"{launcher}.{os.getpid()}.lock").open("a") as own:
        fcntl.flock(own, fcntl.LOCK_EX)
        for path in sorted(folder.glob("*.lock")):
            other, _, _ = path.stem.partition(".")
            if other != launcher and is_taken(path):
                note(folder / "together", f"{launcher} beside {path.stem}")
        if launcher == str(os.getpid()):
            note(folder / "starts", " ".join(os.environ.get(each, "-") for each in VARIABLES))
        return train(own)


def is_taken(path: Path) -> bool:
    with path.open("a") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def note(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(f"{text}\n")


def train(_held: IO[str]) -> int:
    """By its own name, which is that of its ranks' script too."""
    spec = importlib.util.spec_from_file_location("train", TRAIN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return int(module.main())


if __name__ == "__main__":
    sys.exit(main())
