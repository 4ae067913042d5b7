"""What the bridge may be ordered to do, each one request to the API server or to the daemon. Values only."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from nodeagent.client import Position
from nodeagent.schedulers.kubernetes.node_status import Object


class Target(StrEnum):
    """What an order is about. Each has a patience of its own."""

    NODE = "Node"
    CONDITION = "condition of the Node"
    DEVICE_INFO = "ConfigMap mindx-dl-deviceinfo"
    NODE_INFO = "ConfigMap mindx-dl-nodeinfo"
    NODED = "DaemonSet noded"
    DAEMON = "nodeagent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Read it as it is now."""

    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTaints:
    """All taints of the node, if it still is of this version."""

    resource_version: str
    taints: Sequence[Object]
    target: Target = Target.NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCondition:
    """Ours, beside those of others."""

    condition: Object
    target: Target = Target.CONDITION


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    target: Target
    config_map: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace:
    """It names the version that it replaces."""

    target: Target
    config_map: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """If it still is of this version."""

    target: Target
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """Everything up to here is in the cluster."""

    position: Position
    target: Target = Target.DAEMON


Order = Look | SetTaints | SetCondition | Create | Replace | Delete | Ack
