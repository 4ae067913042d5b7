"""The worker of the driver ``link`` in a network namespace, and the signals that it sent."""

from typing import Any

from nodeagent.core.model import Signal
from nodeagent.daemon.workers.worker import WorkerSpec
from tests.daemon.staged import Staged, command, worker_spec
from tests.drivers.link.namespace import Namespace
from tests.drivers.link.tree import Tree


def spec_of(network: Namespace, tree: Tree, module: str = "", **config: Any) -> WorkerSpec:
    extra = ("--module", module) if module else ()
    return worker_spec(
        "",
        source="link",
        config={"sysfs": str(tree.root), **config},
        command=(*network.within, *command("-m", "nodeagent.worker", "link", *extra)),
        poll_interval_s=0.2,
    )


def signals(stage: Staged, device: str) -> list[tuple[str, str]]:
    return [
        (given.code, given.assertion.value)
        for given in stage.inputs
        if isinstance(given, Signal) and (given.source, given.device) == ("link", device)
    ]
