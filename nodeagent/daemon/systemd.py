"""What systemd's libraries give: the ids of this machine and this boot, and notifications of the service
manager.

No id is guessed or written. Outside systemd (no NOTIFY_SOCKET) the notifications do nothing.
"""

import logging
import time

from systemd import daemon, id128

log = logging.getLogger(__name__)


def machine_id() -> str:
    """32 hexadecimal digits (machine-id(5)), "" where the machine has none: then nothing is bound to it."""
    try:
        return str(id128.get_machine().hex)
    except OSError as error:
        log.warning("this machine has no id (%s): a copied disk cannot be detected", error)
        return ""


def boot_id() -> str:
    """The kernel's id of this boot, with dashes (/proc/sys/kernel/random/boot_id)."""
    return str(id128.get_boot())


def ready() -> None:
    daemon.notify("READY=1")


def reloading() -> None:
    """Answered by ``ready`` when the reload is done (sd_notify(3))."""
    usec = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    daemon.notify(f"RELOADING=1\nMONOTONIC_USEC={usec}")


def stopping() -> None:
    daemon.notify("STOPPING=1")


def watchdog() -> None:
    """Call it only after work was done: a loop that only turns is not alive."""
    daemon.notify("WATCHDOG=1")
