"""The drivers, one line each. A new vendor is its folder, its table, and one line here."""

from typing import Final

DRIVERS: Final[dict[str, str]] = {
    "ascend": "nodeagent.drivers.ascend.driver",
    "kmsg": "nodeagent.drivers.kmsg.driver",
    "nvidia": "nodeagent.drivers.nvidia.driver",
    "unifiedbus": "nodeagent.drivers.ascend.switch",
}
"""Name -> module; imported only in the worker that hosts it. See ``drivers.api`` for what a module offers."""

HELLO_DEADLINES_S: Final[dict[str, float]] = {
    "nvidia": 180.0,
}
"""Name -> how long its worker may take to open its library and to list its devices, where that is long.

NVML initialises GPUs that nothing keeps initialised one after the other, and one whose GSP does not start
holds up the others for 45 s.
"""

RESETS: Final[dict[str, str]] = {
    "ascend": "nodeagent.drivers.ascend.reset",
    "nvidia": "nodeagent.drivers.nvidia.reset",
}
"""Vendor -> module; imported only in the process of a reset. See ``drivers.resetting``."""
