"""``[agent]`` of nodeagent.toml: where things are, how patient the daemon is, and what is not watched."""

import socket
from typing import Annotated

from msgspec import Meta, Struct, field

from nodeagent.core.catalog.settings import SECOND_NS, Mode
from nodeagent.core.model import Level
from nodeagent.toml.quantities import duration
from nodeagent.toml.texts import FilePath, NodeName

Patience = Annotated[int, duration(0, 86_400 * SECOND_NS, '"0s" to "1d"')]
LineHold = Annotated[int, duration(SECOND_NS, 600 * SECOND_NS, '"1s" to "10m"')]
SelfHealing = Annotated[int, duration(SECOND_NS, 30 * SECOND_NS, '"1s" to "30s"')]


class AgentConfig(Struct, frozen=True, kw_only=True):
    """``[agent]``. ``node_name`` "" is the host name; ``unknown_level`` overrides that of unknown codes."""

    state_dir: FilePath = "/var/lib/nodeagent"
    socket: FilePath = "/run/nodeagent/nodeagent.sock"
    control_socket: FilePath = "/run/nodeagent/control.sock"
    mode: Mode = Mode.RESCHEDULING
    tables: Annotated[
        tuple[FilePath, ...],
        Meta(min_length=1, max_length=16, description="a list of one or more folders, later ones winning"),
    ] = ("/usr/share/nodeagent/fault_codes", "/etc/nodeagent/fault_codes")
    request_tolerance_ns: Patience = field(default=60 * SECOND_NS, name="request_tolerance")
    self_healing_ns: SelfHealing = field(default=15 * SECOND_NS, name="self_healing")
    max_isolated_chips: Annotated[
        int, Meta(ge=0, le=1024, description="a whole number of chips up to 1024, 0 for no limit")
    ] = 0
    stale_after_ns: Patience = field(default=30 * SECOND_NS, name="stale_after")
    once_hold_ns: Patience = field(default=60 * SECOND_NS, name="once_hold")
    kernel_line_hold_ns: LineHold = field(default=30 * SECOND_NS, name="kernel_line_hold")
    unknown_level: Level | None = None
    node_name: NodeName = ""
    exclude_devices: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=128, pattern=r"\A[!-~]+\Z")], ...],
        Meta(max_length=256, description='a list of names of devices, such as ["gpu7", "eth*"]'),
    ] = ()

    def name(self) -> str:
        """The node's name: as configured, else the host name."""
        return self.node_name or socket.gethostname()
