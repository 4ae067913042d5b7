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

RESETS: Final[dict[str, str]] = {
    "ascend": "nodeagent.drivers.ascend.reset",
    "nvidia": "nodeagent.drivers.nvidia.reset",
}
"""Vendor -> module; imported only in the process of a reset. See ``drivers.resetting``."""
