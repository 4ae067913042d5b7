"""One look for Slurm's HealthCheckProgram: drains or resumes by what is so now, as the bridge does.

Between two looks it remembers one thing, since when the node is well, in a file that a boot forgets. It has
no position in the stream of events, and so keeps no job waiting: where that matters the bridge is to run.
"""

from pathlib import Path
from typing import Final

from nodeagent.schedulers.slurm.decide import SECOND_NS, Node
from nodeagent.schedulers.slurm.programs import Slurm
from nodeagent.schedulers.slurm.verdicts import Standing, Verdicts, is_outdated, reason

STAMP: Final = Path("/run/nodeagent-slurm/well-since")
"""The file has the time in seconds since boot."""


def wanted(verdicts: Verdicts, node: Node, well_s: float, resume_after_ns: int) -> str | None:
    """The reason to drain it for; "": it is to be resumed; None: nothing is to be done. Pure."""
    if verdicts.standing is Standing.BAD:
        is_due = node.takes_work or (node.is_ours and is_outdated(node.reason, verdicts.faults))
        return reason(verdicts.faults, 0) if is_due else None
    is_due = verdicts.standing is Standing.WELL and well_s * SECOND_NS >= resume_after_ns
    return "" if is_due and node.is_ours else None


def well_for_s(stamp: Path, verdicts: Verdicts, now_s: float) -> float:
    """How long the node has been well, as far as earlier looks tell. Raises OSError."""
    if verdicts.standing is not Standing.WELL:
        stamp.unlink(missing_ok=True)
        return 0.0
    try:
        since_s = float(stamp.read_text())
    except (FileNotFoundError, ValueError):
        since_s = now_s
        stamp.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        stamp.write_text(f"{now_s}\n")
    return max(0.0, now_s - since_s)


async def look(slurm: Slurm, name: str, verdicts: Verdicts, well_s: float, resume_after_ns: int) -> str:
    """What was done, in a sentence. Raises SlurmError."""
    node = await slurm.node(name)
    order = wanted(verdicts, node, well_s, resume_after_ns)
    if order is None:
        state = "takes work" if node.takes_work else f"takes no work: {node.reason}"
        return f"node {name} is {verdicts.standing}, and {state}; nothing is to be done"
    if order:
        await slurm.drain(name, order)
        return f"node {name} is drained: {order}"
    await slurm.resume(name)
    return f"node {name} is resumed: all its chips are well"
