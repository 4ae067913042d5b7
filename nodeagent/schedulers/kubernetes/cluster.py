"""What the bridge reads of the objects of the API server. Pure: objects in, values out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from nodeagent.schedulers.kubernetes.node_status import CONDITION, Object

MARK: Final = "nodeagent/written-by"
WRITER: Final = "nodeagent"
"""An annotation. MindCluster's writers replace the whole object: a ConfigMap without it is theirs."""

READERS_LABEL: Final = "mx-consumer-cim"
"""``CIMCMLabelKey``: MindCluster's ClusterD watches the ConfigMaps with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObject:
    """``condition`` is ours, None where there is none yet."""

    resource_version: str
    taints: Sequence[Object]
    condition: Object | None

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> Self:
        conditions = node.get("status", {}).get("conditions") or ()
        return cls(
            resource_version=node["metadata"]["resourceVersion"],
            taints=tuple(node.get("spec", {}).get("taints") or ()),
            condition=next((each for each in conditions if each.get("type") == CONDITION), None),
        )

    def is_older_than(self, other: "NodeObject | None") -> bool:
        """Versions of one resource are whole numbers that grow (KEP-5504, stable since Kubernetes 1.35).

        After a restore from a backup they are smaller. The next write or look shows that, within minutes.
        """
        if other is None:
            return False
        mine, others = self.resource_version, other.resource_version
        return mine.isdigit() and others.isdigit() and int(mine) < int(others)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfoObject:
    """A ConfigMap of MindCluster's form. ``is_ours``: it was this bridge that wrote it last."""

    resource_version: str
    data: Mapping[str, str]
    is_ours: bool

    @classmethod
    def of(cls, config_map: Mapping[str, Any]) -> Self:
        metadata = config_map["metadata"]
        return cls(
            resource_version=metadata["resourceVersion"],
            data=config_map.get("data") or {},
            is_ours=(metadata.get("annotations") or {}).get(MARK) == WRITER,
        )


Found = NodeObject | InfoObject | bool | None
"""An object, None where there is none. Of a thing that is not read, only whether it is there."""


def config_map(name: str, namespace: str, data: Mapping[str, str], resource_version: str | None) -> Object:
    """The object to write. With a version it replaces that one and no other."""
    metadata: dict[str, object] = {
        "name": name,
        "namespace": namespace,
        "labels": {READERS_LABEL: "true"},
        "annotations": {MARK: WRITER},
    }
    if resource_version is not None:
        metadata["resourceVersion"] = resource_version
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
