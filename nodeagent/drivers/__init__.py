"""The drivers, one line each. A new vendor is its folder, its table, and one line here."""

from typing import Final

DRIVERS: Final[dict[str, str]] = {
    "ascend": "nodeagent.drivers.ascend.driver",
    "kmsg": "nodeagent.drivers.kmsg.driver",
    "nvidia": "nodeagent.drivers.nvidia.driver",
    "unifiedbus": "nodeagent.drivers.ascend.switch",
}
"""Name -> module; imported only in the worker that hosts it. See ``drivers.api`` for what a module offers."""

HOSTED: Final = frozenset({"ascend", "unifiedbus"})
"""Those whose worker, under systemd, a unit of its own hosts: see ``drivers.ascend.namespace`` for why."""

HELLO_DEADLINES_S: Final[dict[str, float]] = {"ascend": 180.0, "nvidia": 180.0}
"""Name -> how long the first answer of its worker may take, where that is longer than for others.

``ascend``: while chips start, the first call into the driver sleeps for up to 150 s in the kernel
(sdk_driver/pbl/uda/uda_access.c, ``uda_wait_all_phy_startup``); then ``dcmi_init`` waits about two seconds
for the MCU of each card that is silent.
``nvidia``: NVML initialises GPUs that nothing keeps initialised one after the other, and one whose GSP does
not start holds up the others for 45 s.
"""

EVENTS_LOST: Final[dict[str, str]] = {"ASC_LQ_QUEUE_FULL": "unifiedbus"}
"""Code of a line of the kernel log -> the source that has lost events by it, and of which only another
process asks the driver for all that stands: see ``drivers.ascend.switch``.
"""

RESETS: Final[dict[str, str]] = {
    "ascend": "nodeagent.drivers.ascend.reset",
    "nvidia": "nodeagent.drivers.nvidia.reset",
}
"""Vendor -> module; imported only in the process of a reset. See ``drivers.resetting``."""
