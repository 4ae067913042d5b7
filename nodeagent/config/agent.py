"""nodeagent.toml: its schema, its defaults, and loading it. Every key has a default; no unknown key passes.

The configuration says where things are and how patient to be. It never says what a fault means: that is
the tables' part, save the few settings of ``Config.settings`` that change a decision.
"""

import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from nodeagent.config.drivers import ChipsConfig, DriverConfig, KmsgConfig
from nodeagent.config.jobs import SOCKET_NAME, JobsConfig
from nodeagent.config.public import PublicConfig, read_public
from nodeagent.config.reset import ResetConfig
from nodeagent.config.slurm import SlurmConfig
from nodeagent.core.catalog.catalog import SECOND_NS, Mode, Settings
from nodeagent.core.model import KERNEL_LOG, PREVIOUS_BOOT, Level
from nodeagent.toml.fields import nearest, read_form, refuse_unknown_keys, shown
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.problem import Problem, Problems
from nodeagent.toml.quantities import duration, parse_size_bytes
from nodeagent.toml.source import Source, read_source
from nodeagent.toml.texts import FilePath, NodeName, OptionalPath
from nodeagent.vendors import DRIVERS

DEFAULT_PATH = Path("/etc/nodeagent/nodeagent.toml")
PATH_VARIABLE = "NODEAGENT_CONFIG"
SOCKET_PATH_LIMIT_BYTES = 107
"""``sun_path`` of a unix socket holds 108 bytes with its end mark (unix(7))."""

_DAY_NS = 86_400 * SECOND_NS

_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s\x00-\x1f\x7f:\[\]]*):(\d{1,5})")

Patience = Annotated[int, duration(0, _DAY_NS, '"0s" to "1d"')]
LineHold = Annotated[int, duration(SECOND_NS, 600 * SECOND_NS, '"1s" to "10m"')]
SelfHealing = Annotated[int, duration(SECOND_NS, 30 * SECOND_NS, '"1s" to "30s"')]
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


class MetricsConfig(Struct, frozen=True, kw_only=True):
    """``[metrics]``. ``listen`` "" serves none."""

    listen: str = "127.0.0.1:9108"


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


class StoreConfig(Struct, frozen=True, kw_only=True):
    """``[store]``: what is kept of events and inputs, at most."""

    retention_ns: Retention = field(default=30 * _DAY_NS, name="retention")
    max_size_bytes: StoreSize = field(default=1 << 30, name="max_size")


class Config(Struct, frozen=True, kw_only=True):
    """The whole configuration; ``drivers`` has an entry for every driver, mentioned or not."""

    agent: AgentConfig = field(default_factory=AgentConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    grpc: GrpcConfig = field(default_factory=GrpcConfig)
    reset: ResetConfig = field(default_factory=ResetConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    public: PublicConfig = field(default_factory=PublicConfig)
    jobs: JobsConfig = field(default_factory=JobsConfig)
    slurm: SlurmConfig = field(default_factory=SlurmConfig)
    drivers: Mapping[str, DriverConfig]

    @property
    def kmsg(self) -> KmsgConfig:
        """``[drivers.kmsg]`` with the keys that only it has."""
        kmsg = self.drivers[KERNEL_LOG]
        if not isinstance(kmsg, KmsgConfig):
            raise TypeError(f"drivers.{KERNEL_LOG} must be a KmsgConfig")
        return kmsg

    def without_effect(self) -> tuple[str, ...]:
        """What is sound and means nothing as things stand, to be warned of."""
        return tuple(
            f"drivers.{name}.expected_chips = {section.expected_chips} has no effect:"
            f" drivers.{name}.enabled is false"
            for name, section in self.drivers.items()
            if isinstance(section, ChipsConfig) and section.expected_chips and not section.enabled
        )

    @property
    def record_dir(self) -> Path:
        """Where resets leave their record and evidence: beside the state, for the daemon only to read."""
        return Path(f"{Path(self.agent.state_dir)}-reset")

    @property
    def jobs_socket(self) -> str:
        """Where supervisors of jobs connect."""
        return self.jobs.socket or str(Path(self.agent.socket).with_name(SOCKET_NAME))

    def settings(self) -> Settings:
        """The part of the configuration that changes a decision, for the catalog."""
        return Settings(
            mode=self.agent.mode,
            request_tolerance_ns=self.agent.request_tolerance_ns,
            self_healing_ns=self.agent.self_healing_ns,
            max_isolated_chips=self.agent.max_isolated_chips,
            once_hold_ns=self.agent.once_hold_ns,
            stale_after_ns=self.agent.stale_after_ns,
            kernel_line_hold_ns=self.agent.kernel_line_hold_ns,
            unknown_level=self.agent.unknown_level,
            reset=self.reset.settings(),
            public=self.public.settings(),
            jobs=self.jobs.settings(),
        )


class ConfigError(Exception):
    """The configuration cannot be used; str() is one line for each problem."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


_SECTIONS: Mapping[str, type[Struct]] = {
    "agent": AgentConfig,
    "metrics": MetricsConfig,
    "grpc": GrpcConfig,
    "reset": ResetConfig,
    "store": StoreConfig,
    "jobs": JobsConfig,
    "slurm": SlurmConfig,
}


def config_file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The one named, else ``$NODEAGENT_CONFIG``, else that at the default place; None where there is none."""
    if path is None and (named := environ.get(PATH_VARIABLE)):
        path = Path(named)
    if path is None and DEFAULT_PATH.exists():
        path = DEFAULT_PATH
    return path


def load_config(path: Path | None, environ: Mapping[str, str]) -> Config:
    """Reads the file that ``config_file`` finds; where there is none, every key has its default.

    Raises ConfigError with every problem of the file; a file that was named must exist.
    """
    path = config_file(path, environ)
    if path is None:
        return Config(drivers={name: traits.section() for name, traits in DRIVERS.items()})
    problems = Problems()
    source = read_source(path, problems.add)
    config = None if source is None else _read(source, problems)
    if config is None or problems:
        raise ConfigError(problems.found())
    return config


def _read(source: Source, problems: Problems) -> Config | None:
    def report(key: KeyPath, reason: str) -> None:
        problems.add(source.problem(key, reason))

    refuse_unknown_keys(source.data, (*_SECTIONS, "public", "drivers"), (), report)
    sections: dict[str, Any] = {}
    for name, form in _SECTIONS.items():
        if (section := read_form(form, source.data.get(name, {}), (name,), report)) is not None:
            sections[name] = section
    public = read_public(source.data.get("public", {}), report)
    drivers = _read_drivers(source.data.get("drivers", {}), report)
    if problems or public is None:
        return None
    config = Config(drivers=drivers, public=public, **sections)
    _check(config, report)
    return config


def _read_drivers(tables: object, report: Callable[[KeyPath, str], None]) -> dict[str, DriverConfig]:
    if not isinstance(tables, Mapping):
        report(("drivers",), f"{shown(tables)} stands where tables such as [drivers.kmsg] are needed")
        return {}
    for name in tables:
        if name not in DRIVERS:
            report(("drivers", name), f"no such driver; {nearest(name, DRIVERS)}")
    drivers: dict[str, DriverConfig] = {}
    for name, traits in DRIVERS.items():
        section = read_form(traits.section, tables.get(name, {}), ("drivers", name), report)
        if section is not None:
            drivers[name] = section
    return drivers


def _check(config: Config, report: Callable[[KeyPath, str], None]) -> None:
    """What no single key can show."""
    agent = config.agent
    _check_sockets(config, report)
    if agent.unknown_level is not None and agent.unknown_level not in _LEVELS_FOR_UNKNOWN:
        levels = ", ".join(_LEVELS_FOR_UNKNOWN)
        report(("agent", "unknown_level"), f"{shown(str(agent.unknown_level))}: must be one of {levels}")
    if config.drivers[PREVIOUS_BOOT].required:
        reason = "true: must be false, for once it is read nothing is observed any more"
        report(("drivers", PREVIOUS_BOOT, "required"), reason)
    for section, listen in (("metrics", config.metrics.listen), ("grpc", config.grpc.listen)):
        match = _ADDRESS.fullmatch(listen)
        if listen and (match is None or not 0 <= int(match[1]) <= 65535):
            report(
                (section, "listen"), f'{shown(listen)}: must be "HOST:PORT", such as "127.0.0.1:9108", or ""'
            )
    if config.grpc.listen:
        for key in ("tls_cert", "tls_key", "tls_client_ca"):
            if not getattr(config.grpc, key):
                report(("grpc", key), "missing; grpc.listen is by mutual TLS only and needs this file's path")
    config.jobs.check(lambda key, reason: report(("jobs", *key), reason))
    config.reset.check(agent.state_dir, lambda key, reason: report(("reset", *key.split(".")), reason))


def _check_sockets(config: Config, report: Callable[[KeyPath, str], None]) -> None:
    seen: dict[str, str] = {}
    for section, key, path in (
        ("agent", "socket", config.agent.socket),
        ("agent", "control_socket", config.agent.control_socket),
        ("jobs", "socket", config.jobs_socket),
    ):
        if len(path.encode()) > SOCKET_PATH_LIMIT_BYTES:
            reason = f"{shown(path)}: a socket's path has at most {SOCKET_PATH_LIMIT_BYTES} bytes"
            report((section, key), reason)
        if path in seen:
            report((section, key), f"{shown(path)}: must differ from {seen[path]}")
        seen.setdefault(path, f"{section}.{key}")


_LEVELS_FOR_UNKNOWN = (
    Level.NOT_HANDLE,
    Level.SUB_HEALTH,
    Level.RESTART_REQUEST,
    Level.RESTART_BUSINESS,
    Level.FREE_RESTART_NPU,
    Level.RESTART_NPU,
    Level.PRE_SEPARATE_NPU,
    Level.SEPARATE_NPU,
)
