"""For training programs: ``nodeagent_job.beat(step=7)`` reports that the program goes on.

It needs nothing but Python, works with or without a supervisor, and never harms the program: a call sends
one datagram at most, never blocks and never raises.
"""

from __future__ import annotations

import os
import socket

__all__ = ["beat"]


def beat(step: int | None = None, phase: str | None = None, checkpoint: int | None = None) -> None:
    """Report to the supervisor of this job the step, the phase, and the number of the newest checkpoint.

    ``phase`` is train (as where none is given), eval, checkpoint, compile or load; only in train the steps
    must go on soon. Without a supervisor, so without ``NODEAGENT_BEAT``, nothing happens.
    """
    path = os.environ.get("NODEAGENT_BEAT")
    if not path:
        return
    values = (("step", step), ("phase", phase), ("checkpoint", checkpoint))
    text = " ".join(f"{name}={value}" for name, value in values if value is not None)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            sender.sendto(text.encode("ascii", "replace"), path)
    except (OSError, ValueError):  # no listener, or one that does not keep up: the training goes on
        pass
