"""The sections of nodeagent.toml for the daemon itself: agent, grpc, metrics, nvrx, store and jobs.

``[reset]`` and ``[public]`` have modules of their own; the sections of drivers are in ``nodeagent.vendors``.
"""

import socket
from collections.abc import Callable, Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from nodeagent.core.catalog.settings import SECOND_NS, JobSettings, Mode
from nodeagent.core.model import Level
from nodeagent.job.policy import keys
from nodeagent.toml.values import FilePath, NodeName, OptionalPath, duration, parse_size_bytes

Patience = Annotated[int, duration(0, 86_400 * SECOND_NS, '"0s" to "1d"')]
LineHold = Annotated[int, duration(SECOND_NS, 600 * SECOND_NS, '"1s" to "10m"')]
SelfHealing = Annotated[int, duration(0, 30 * SECOND_NS, '"0s" to "30s"')]


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
    self_healing_ns: SelfHealing = field(default=0, name="self_healing")
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


class GrpcConfig(Struct, frozen=True, kw_only=True):
    """``[grpc]``: TCP, by mutual TLS only. ``roles`` is by the client certificate's name, "*" any other."""

    listen: str = ""
    tls_cert: OptionalPath = ""
    tls_key: OptionalPath = ""
    tls_client_ca: OptionalPath = ""
    roles: Annotated[
        Mapping[str, Literal["none", "reader", "reporter", "operator"]],
        Meta(
            description='a table that gives each certificate name "none", "reader", "reporter" or "operator"'
        ),
    ] = field(default_factory=dict)


class MetricsConfig(Struct, frozen=True, kw_only=True):
    """``[metrics]``. ``listen`` "" serves none. ``states``: of a device's verdict, handling and level the one
    that holds, or all with 0 for the others.
    """

    listen: str = "127.0.0.1:9108"
    states: Literal["current", "all"] = "current"


class NvrxConfig(Struct, frozen=True, kw_only=True):
    """``[nvrx]``. ``socket`` "": not served."""

    socket: OptionalPath = ""


_DAY_NS = 86_400 * SECOND_NS

Retention = Annotated[int, duration(_DAY_NS, 3650 * _DAY_NS, '"1d" to "3650d"')]
StoreSize = Annotated[
    int,
    Meta(
        ge=16 << 20,
        le=1 << 40,
        description='a size from "16MiB" to "1TiB"',
        extra={"reads": parse_size_bytes},
    ),
]


class StoreConfig(Struct, frozen=True, kw_only=True):
    """``[store]``: what is kept of events and inputs, at most."""

    retention_ns: Retention = field(default=30 * _DAY_NS, name="retention")
    max_size_bytes: StoreSize = field(default=1 << 30, name="max_size")


SOCKET_NAME: Final = "jobs.sock"

NEEDS_PLACEMENTS: Final = "needs placements too, or each job that sets none is refused"

StopTimeout = Annotated[int, duration(5 * SECOND_NS, 600 * SECOND_NS, '"5s" to "10m"')]
HealTimeout = Annotated[int, duration(30 * SECOND_NS, 3600 * SECOND_NS, '"30s" to "1h"')]
Policies = Annotated[
    Mapping[str, Annotated[str, Meta(max_length=256)]],
    Meta(max_length=64, description="a table of policy keys, each with its value as text in quotes"),
]


ConsumerName = Annotated[
    str,
    Meta(
        max_length=128,
        pattern=r"\A[^\x00-\x1f\x7f-\x9f]*\Z",
        description='the name of a consumer, such as "slurm", or ""',
    ),
]


class JobsConfig(Struct, frozen=True, kw_only=True):
    """``[jobs]``. ``socket`` "" is ``jobs.sock`` next to ``agent.socket``.

    ``accept`` claimed: only jobs that a hook has claimed a chip for. ``in_place`` registered: chips that only
    jobs use which may be stopped and run again are judged as in mode graceful. ``leave_after``: a job leaves
    a node that is out of service only once this consumer has acknowledged why.
    """

    enabled: bool = True
    socket: OptionalPath = ""
    accept: Literal["everybody", "claimed"] = "everybody"
    in_place: Literal["as-mode", "registered"] = "as-mode"
    stop_timeout_ns: StopTimeout = field(default=60 * SECOND_NS, name="stop_timeout")
    leave_after: ConsumerName = ""
    heal_timeout_ns: HealTimeout = field(default=600 * SECOND_NS, name="heal_timeout")
    defaults: Policies = field(default_factory=dict)
    limits: Policies = field(default_factory=dict)

    def check(self, report: Callable[[tuple[str, str], str], None]) -> None:
        """What is no key of a policy, or has no such value or limit: ``report((table, key), reason)``."""
        for table, policies in (("defaults", self.defaults), ("limits", self.limits)):
            for key, text in policies.items():
                wrong = keys.problem(key, text, as_limit=table == "limits")
                if wrong is not None:
                    report((table, key), wrong.removeprefix(f"{key}: "))
        if self.defaults.get("unconditional", "").lower() == "true" and "placements" not in self.defaults:
            report(("defaults", "unconditional"), NEEDS_PLACEMENTS)

    def settings(self) -> JobSettings:
        """What the core decides by."""
        return JobSettings(
            stop_timeout_ns=self.stop_timeout_ns,
            heal_timeout_ns=self.heal_timeout_ns,
            in_place_registered=self.in_place == "registered",
        )
