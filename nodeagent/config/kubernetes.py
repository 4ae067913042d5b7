"""``[kubernetes]`` of nodeagent.toml: what the bridge to Kubernetes writes there, and for which node.

The daemon reads none of it.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.toml.quantities import duration
from nodeagent.toml.texts import OptionalPath

UNKNOWN_PLACE: Final = -1
"""``DefaultSuperPodID`` and ``DefaultServerIndex`` of MindCluster's device-plugin."""

ResumeAfter = Annotated[int, duration(0, 3600 * SECOND_NS, '"0s" to "1h"')]
Place = Annotated[
    int, Meta(ge=UNKNOWN_PLACE, le=2**31 - 1, description="a whole number, or -1 where there is none")
]


class KubernetesConfig(Struct, frozen=True, kw_only=True):
    """``[kubernetes]``. ``node`` "" is the node's name in ``[agent]``.

    ``--node`` and ``$NODE_NAME`` win over it. ``kubeconfig`` "" is the service account of the pod.
    ``taint``: for which verdicts, "chip" those of the node and its chips, "node" the node's own, "off" none.
    """

    node: Annotated[
        str,
        Meta(
            max_length=253,
            pattern=r"\A([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?\Z",
            description="the name of this node in Kubernetes, in lower case",
        ),
    ] = ""
    kubeconfig: OptionalPath = ""
    taint: Literal["chip", "node", "off"] = "chip"
    resume_after_ns: ResumeAfter = field(default=60 * SECOND_NS, name="resume_after")
    device_info: bool = False
    node_info: bool = False
    super_pod_id: Place = UNKNOWN_PLACE
    server_index: Place = UNKNOWN_PLACE
