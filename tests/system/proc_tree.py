"""Threads and processes in a tree such as /proc."""

from pathlib import Path

PID, BEGAN = 42, 4711


NONE, KILL, TERM = "0000000000000000", "0000000000000100", "0000000000004000"


EXITING = 0x40_0004


def thread(procfs: Path, number: int, state: str = "S", flags: int = 0x40_0000, **pending: str) -> None:
    """As proc_pid_stat(5) and proc_pid_status(5) have it; the first one stands for the process, too."""
    process = procfs / str(PID)
    masks = {"SigPnd": NONE, "ShdPnd": NONE, **pending}
    for folder in (process / "task" / str(number), *([process] if number == PID else [])):
        folder.mkdir(parents=True, exist_ok=True)
        fields = f"{state} 7 1 1 0 -1 {flags} 0 0 0 0 5 0 0 0 20 0 9 0 {BEGAN} 0 0"
        (folder / "stat").write_text(f"{number} (a) b) {fields}\n")
        lines = (f"{name}:\t{mask}\n" for name, mask in masks.items())
        (folder / "status").write_text(f"Name:\ta) b\n{''.join(lines)}SigBlk:\t{KILL}\n")
