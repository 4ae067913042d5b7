"""Whether a process has ended: once its last thread has, which lets go of all that it had open.

Nobody has to wait for it as its parent. It ends no process.
"""

import os
import select


def has_ended(process: int, within_ms: int | None = 0) -> bool:
    """Also true of one that there is not. Waits for the end so long, with None until it comes."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(within_ms))
    finally:
        os.close(descriptor)
