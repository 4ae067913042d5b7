"""Why this process may not open a device file: what in the unit or on the file denies it.

A vendor's library only reports "not permitted". After such a failure this module opens the device files that
the library needs, one after the other, and closes them at once. It reads and writes nothing.
"""

import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

_HINTS: Final[Mapping[int, str]] = {
    errno.EPERM: "in a systemd unit DeviceAllow= must hold it, with rw; a group there is looked up when the"
    " unit starts, so restart it after the driver was loaded",
    errno.EACCES: "its group and mode keep this user out: in a systemd unit set Group= to that group; root"
    " needs CAP_DAC_OVERRIDE to pass",
    errno.ENOENT: "in a systemd unit PrivateDevices= hides it; in a container it must be passed in",
    errno.ENXIO: "it has no driver: is the vendor's kernel module loaded?",
    errno.ENODEV: "it has no driver: is the vendor's kernel module loaded?",
}


def denials(devices: Iterable[Path]) -> str:
    """One clause for each of these that cannot be opened, with what to change; "" if all can be."""
    return "; ".join(reason for device in devices if (reason := _denial(device)))


def _denial(device: Path) -> str:
    try:
        os.close(os.open(device, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError as error:
        return f"cannot open {device}: {error.strerror}{hint(error.errno or 0)}"
    return ""


def hint(number: int) -> str:
    """What to change where a file could not be opened by this error, in brackets; "" if unknown."""
    known = _HINTS.get(number, "")
    return f" ({known})" if known else ""
