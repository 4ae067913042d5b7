"""The worker of each driver as a test starts it, with short time limits."""

from pathlib import Path
from typing import Any

from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.emulator.node import EmulatedNode
from tests.daemon.staged import command, worker_spec


def ascend_spec(library: Path, sysfs: Path, **given: Any) -> WorkerSpec:
    """The driver's worker on this library and this PCI tree, with short time-outs."""
    defaults: dict[str, Any] = {
        "source": "ascend",
        "command": command("-m", "nodeagent.worker", "ascend"),
        "config": {"library": str(library), "sysfs": str(sysfs)},
        "poll_interval_s": 0.1,
    }
    return worker_spec("", **{**defaults, **given})


def switch_spec(library: Path, **given: Any) -> WorkerSpec:
    """The driver's worker on this library, with short time-outs."""
    defaults: dict[str, Any] = {
        "source": "unifiedbus",
        "command": command("-m", "nodeagent.worker", "unifiedbus"),
        "config": {"library": str(library)},
        "poll_interval_s": 0.1,
    }
    return worker_spec("", **{**defaults, **given})


def bmc_spec(node: EmulatedNode, **given: Any) -> WorkerSpec:
    """The driver's worker on the BMC of this node."""
    defaults: dict[str, Any] = {
        "source": "bmc",
        "command": command("-m", "nodeagent.worker", "bmc"),
        "config": {"library": str(node.ipmi)},
    }
    return worker_spec("", **{**defaults, **given})
