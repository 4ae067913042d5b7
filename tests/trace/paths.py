"""The three paths: what happens, and when it is over.

Each starts what it needs, lets it idle for as long as the event will take, then causes the event.
"""

import json
import time
from collections.abc import Callable
from typing import Final

from tests.trace.node import Node
from tests.trace.recorder import Span

SETTLE_S = 3.0
"""After a start: what follows from it is done."""

SHORT_S = 12.0
"""Longer than the pause of any timer of the daemon that runs often: the longest of them is 10 s."""

LONG_S = 25.0
"""A reset is announced for 5 s, done, and then confirmed by polls."""

CHIP = "npu3"
BROKEN = "80A18008"
"""RestartNPU: it asks for a reset."""

_WARM = "a line that no pattern knows"
"""The first line makes the reader load what it matches with: that belongs to the start."""

_XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."

# Polls are the only thing that happens in an idle daemon. Where the path has no poll in it, there is none.
_CHIPS: Final = """
[drivers.ascend]
library = "{folder}/emulator/libdcmi.so"
sysfs = "{folder}/emulator/sys"
poll_interval = "{poll_interval}"
"""
_RESETS: Final = """
[reset]
mode = "on"
run_dir = "{folder}/reset"
do_not_touch = "{folder}/do-not-touch"
announce = "5s"
cool_down = "0s"
trust_process_list = true
allow_volatile_store = true
"""
_JOB: Final = 'echo "run of $$"; exec sleep 100000'


def line(node: Node) -> None:
    """An Xid in the kernel log, until ``nodeagent events --follow`` has printed the fault."""
    node.start_daemon()
    node.start("subscriber", "events", "--follow", "--socket", f"{node.folder}/public.sock", "-o", "json")
    node.write_kernel_line(_WARM)
    time.sleep(SETTLE_S)
    _idle(node, SHORT_S)
    with node.span(Span.EVENT, SHORT_S):
        node.write_kernel_line(_XID)
        node.until(lambda: "XID_79" in node.output("subscriber"), "event of XID_79")


def order(node: Node) -> None:
    """``nodeagent isolate``, until it has printed the hold."""
    node.start_emulator()
    node.sections = _CHIPS.format(folder=node.folder, poll_interval="1h")
    node.start_daemon()
    time.sleep(SETTLE_S)
    _idle(node, SHORT_S)
    with node.span(Span.EVENT, SHORT_S):
        node.command("isolate", CHIP, "--reason", "traced", "--socket", f"{node.folder}/control.sock")


def job(node: Node) -> None:
    """A fault of a chip that a job is on, until the chip was reset and the command runs again."""
    node.start_emulator()
    node.sections = (_CHIPS + _RESETS).format(folder=node.folder, poll_interval="1s")
    node.start_daemon()
    state = f"{node.folder}/job"
    node.start("job", "job", "run", "--in-place", "--state", state, "--", "sh", "-c", _JOB)
    node.until(lambda: _runs(node), "first run of the job")
    node.emulate("hold", CHIP, _runs(node)[0], "--real")
    node.until(lambda: CHIP in json.dumps(node.snapshot().get("jobs")), f"job on {CHIP}")
    time.sleep(SETTLE_S)
    _idle(node, LONG_S)
    with node.span(Span.EVENT, LONG_S):
        node.emulate("raise", CHIP, BROKEN)
        node.until(lambda: len(_runs(node)) > 1, "second run of the job")


PATHS: Final[dict[str, Callable[[Node], None]]] = {"line": line, "order": order, "job": job}


def _idle(node: Node, length_s: float) -> None:
    with node.span(Span.IDLE, length_s):
        pass


def _runs(node: Node) -> list[str]:
    """The pid of each run's command."""
    lines = node.output("job").splitlines()
    return [line.removeprefix("run of ") for line in lines if line.startswith("run of ")]
