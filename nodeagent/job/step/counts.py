"""The counts of a job after a run on many nodes, out of what each node has counted. Pure.

Progress on one node is progress of the job. A failure, or a hang, costs one, on however many nodes it shows.
"""

from collections.abc import Iterable
from dataclasses import replace

from nodeagent.job.model import Counts
from nodeagent.job.step.model import Outcome


def merged(base: Counts, outcomes: Iterable[Outcome], decided_by: Outcome | None) -> Counts:
    """``base`` are those with which each node began. What ``decided_by`` has counted is counted once; None:
    nobody's failure decided.
    """
    of = list(outcomes)
    progressed = [each for each in of if each.progressed]
    bests = [each.counts.best for each in (*progressed, *of) if each.counts.best is not None]
    counts = base
    if progressed:
        refilled = min(each.counts.placements for each in progressed) < base.placements
        counts = replace(
            base,
            placements=0 if refilled else base.placements,
            placements_in_row=0,
            retries=0,
            hangs=0,
            signature="",
        )
    if bests:
        counts = replace(counts, best=max(bests if base.best is None else (*bests, base.best)))
    return counts if decided_by is None else _with_cost(counts, base, decided_by)


def _with_cost(counts: Counts, base: Counts, outcome: Outcome) -> Counts:
    """What this node has used up since its own last progress, or since the beginning of the run."""
    began = replace(base, placements_in_row=0, retries=0, hangs=0) if outcome.progressed else base
    after = outcome.counts
    return replace(
        counts,
        placements=counts.placements + max(0, after.placements - began.placements),
        placements_in_row=counts.placements_in_row
        + max(0, after.placements_in_row - began.placements_in_row),
        retries=counts.retries + max(0, after.retries - began.retries),
        hangs=counts.hangs + max(0, after.hangs - began.hangs),
        signature=after.signature,
    )
