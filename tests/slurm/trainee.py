"""What a step of a test runs on each node: says that it is there, and does what it is told to.

    trainee.py FOLDER

It appends a line to FOLDER/runs when it begins (node, run, why, execution, placement, pid), and one to
FOLDER/ends when a signal ends it. FOLDER/orders has lines "NODE RUN WORD...": exit STATUS, ignore-term,
end-slowly. A run whose number is in FOLDER/done ends with 0.
"""

import os
import signal
import sys
import time
from pathlib import Path

FOLDER = Path(sys.argv[1])
NODE = os.environ["SLURMD_NODENAME"]
RUN = os.environ["NODEAGENT_RUN"]


def say(file: str, *words: str) -> None:
    with (FOLDER / file).open("a") as opened:
        opened.write(" ".join(words) + "\n")


def end(*_: object) -> None:
    if ["ignore-term"] not in orders():
        if ["end-slowly"] in orders():  # as one that writes a checkpoint
            time.sleep(1)
        say("ends", NODE, RUN)
        sys.exit(143)


def orders() -> list[list[str]]:
    lines = (FOLDER / "orders").read_text().splitlines() if (FOLDER / "orders").exists() else []
    return [words[2:] for words in map(str.split, lines) if words[:2] == [NODE, RUN]]


def is_done() -> bool:
    return RUN in ((FOLDER / "done").read_text().split() if (FOLDER / "done").exists() else ())


signal.signal(signal.SIGTERM, end)
variables = ("NODEAGENT_RUN", "NODEAGENT_WHY", "MA_PROC_START_CNT", "MA_SCHEDULE_CNT")
say("runs", NODE, *(os.environ[each] for each in variables), str(os.getpid()))
while not is_done():
    for words in orders():
        if words[0] == "exit":
            sys.exit(int(words[1]))
    time.sleep(0.02)
