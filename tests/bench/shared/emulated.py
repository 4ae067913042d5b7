"""An emulated node of eight NPUs and eight GPUs for the daemon under measurement, by the real drivers."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from nodeagent.emulator.node import EmulatedNode

ACCELERATORS = "8x910B+8xH100"

_DRIVERS = """
[drivers.ascend]
library = "{node.dcmi}"
sysfs = "{node.sysfs}"
required = {required}

[drivers.nvidia]
library = "{node.nvml}"
sysfs = "{node.sysfs}"
required = {required}

[drivers.unifiedbus]
library = "{node.lingqu}"
sysfs = "{node.sysfs}"

[drivers.bmc]
library = "{node.ipmi}"
"""


@contextlib.contextmanager
def accelerators(directory: Path, *, required: bool = False) -> Iterator[tuple[EmulatedNode, str]]:
    """The node, in ``directory``, and the sections of the configuration for it.

    ``required``: the daemon says SERVING only once every one of the sixteen was polled.
    """
    with EmulatedNode.create(directory / "node", ACCELERATORS) as node:
        yield node, _DRIVERS.format(node=node, required=str(required).lower())
