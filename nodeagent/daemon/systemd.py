"""What the service manager is notified of: ready, reloading, stopping, and that the pump still turns.

Outside systemd (no NOTIFY_SOCKET) every call does nothing.
"""

import time

from systemd import daemon


def ready() -> None:
    daemon.notify("READY=1")


def reloading() -> None:
    """Answered by ``ready`` when the reload is done (sd_notify(3))."""
    usec = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    daemon.notify(f"RELOADING=1\nMONOTONIC_USEC={usec}")


def stopping() -> None:
    daemon.notify("STOPPING=1")


def watchdog() -> None:
    """Call it only where work was done: a loop that merely runs is not alive."""
    daemon.notify("WATCHDOG=1")
