"""``[slurm]`` and ``[kubernetes]`` of nodeagent.toml, for the bridges. The daemon reads neither."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.toml.values import FilePath, OptionalPath, duration

SlurmResumeAfter = Annotated[int, duration(0, 86_400 * SECOND_NS, '"0s" to "1d"')]
LookEach = Annotated[int, duration(SECOND_NS, 600 * SECOND_NS, '"1s" to "10m"')]
SlurmNode = Annotated[
    str,
    Meta(
        max_length=64,
        pattern=r"\A(?!(?i:all)\Z)[A-Za-z0-9._-]*\Z",  # "ALL" is every node of the cluster
        description='the name of one node of Slurm, such as "n12", or ""',
    ),
]


class SlurmConfig(Struct, frozen=True, kw_only=True):
    """``[slurm]``. ``node_name`` "" is the one whose NodeHostname is this machine's; ``programs`` is the
    folder of scontrol and squeue.
    """

    node_name: SlurmNode = ""
    programs: FilePath = "/usr/bin"
    resume_after_ns: SlurmResumeAfter = field(default=60 * SECOND_NS, name="resume_after")
    look_each_ns: LookEach = field(default=30 * SECOND_NS, name="look_each")
    requeue: Literal["off", "unsupervised"] = "off"


UNKNOWN_PLACE: Final = -1
"""``DefaultSuperPodID`` and ``DefaultServerIndex`` of MindCluster's device-plugin."""

KubernetesResumeAfter = Annotated[int, duration(0, 3600 * SECOND_NS, '"0s" to "1h"')]
TopologyIndex = Annotated[
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
    resume_after_ns: KubernetesResumeAfter = field(default=60 * SECOND_NS, name="resume_after")
    device_info: bool = False
    node_info: bool = False
    super_pod_id: TopologyIndex = UNKNOWN_PLACE
    server_index: TopologyIndex = UNKNOWN_PLACE
