"""``[slurm]`` of nodeagent.toml: for the Slurm bridge and the health check. The daemon does nothing by it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.toml.quantities import duration
from nodeagent.toml.texts import FilePath

ResumeAfter = Annotated[int, duration(0, 86_400 * SECOND_NS, '"0s" to "1d"')]
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
    resume_after_ns: ResumeAfter = field(default=60 * SECOND_NS, name="resume_after")
    look_each_ns: LookEach = field(default=30 * SECOND_NS, name="look_each")
    requeue: Literal["off", "unsupervised"] = "off"
