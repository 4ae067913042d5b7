"""For training programs: ``nodeagent_job.beat(step=7)`` reports that the program goes on.

It needs nothing but Python, works with or without a supervisor, and never harms the program: a call sends
one datagram, or two with a step time, never blocks and never raises.
"""

from __future__ import annotations

import os
import socket

__all__ = ["beat"]


RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Where launchers put the rank of a process."""


def beat(
    step: int | None = None,
    phase: str | None = None,
    checkpoint: int | None = None,
    *,
    compute_s: float | None = None,
    rank: int | None = None,
    group: str | None = None,
) -> None:
    """Report to the supervisor of this job the step, the phase, and the number of the newest checkpoint.

    ``phase`` is train (as where none is given), eval, checkpoint, compile or load; only in train the steps
    must go on soon. Without a supervisor, so without ``NODEAGENT_BEAT``, nothing happens.

    ``compute_s``, with ``step``: the seconds that this rank worked on the step by itself, without any wait
    for other ranks. If every rank reports it, a slow rank is found. ``rank`` is known from the environment
    below the usual launchers. ``group``: ranks of one group do the same work, as those of a pipeline stage.
    """
    path = os.environ.get("NODEAGENT_BEAT")
    if not path:
        return
    if compute_s is not None and step is not None and rank is None:
        rank = next((int(each) for name in RANKS if (each := os.environ.get(name, "")).isdigit()), None)
    try:
        texts = []
        if compute_s is None or phase is not None or checkpoint is not None:
            texts.append(_text(step=step, phase=phase, checkpoint=checkpoint))
        if compute_s is not None and step is not None and rank is not None:
            # By itself: a supervisor of an earlier version passes over what it does not know.
            texts.append(_text(step=step, compute_s=f"{float(compute_s):.6f}", rank=rank, group=group))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            for text in texts:
                sender.sendto(text.encode("ascii", "replace"), path)
    except (
        OSError,
        ValueError,
        TypeError,
    ):  # no listener, or one that does not keep up: the training goes on
        pass


def _text(**values: object) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items() if value is not None)
