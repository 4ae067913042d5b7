"""Memory that was needed once, for compiling patterns or reading tables, goes back to the system.

glibc keeps what a program has freed for its next need (malloc_trim(3)): of RE2's compiler that is seven MiB,
for as long as the process lives. It frees nothing that is in use, and does nothing with another C library.
"""

import ctypes

_C_LIBRARY = ctypes.CDLL(None)


def give_back() -> None:
    """Takes some milliseconds: for the end of work that is seldom done."""
    if hasattr(_C_LIBRARY, "malloc_trim"):
        _C_LIBRARY.malloc_trim(0)
