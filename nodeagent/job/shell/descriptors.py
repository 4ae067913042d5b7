"""The descriptors of a child that is forked and goes on without an exec: it keeps none of the supervisor's.

A lock, a socket or a pipe that such a child keeps would outlive the supervisor with it.
"""

import os
from collections.abc import Set as AbstractSet
from contextlib import suppress


def close_all_but(kept: AbstractSet[int]) -> None:
    """One by one: the limit of numbers is a thousand million in some containers."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 # before anything is imported for it
        if int(name) not in kept:
            with suppress(OSError):
                os.close(int(name))
