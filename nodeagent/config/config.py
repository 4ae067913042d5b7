"""The whole configuration: its sections and their defaults. Every key has a default.

The configuration sets paths and time limits. It does not define what a fault means: the tables do, except for
the few settings in ``Config.settings`` that change a decision.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from nodeagent.config.public import PublicConfig
from nodeagent.config.reset import ResetConfig
from nodeagent.config.schedulers import KubernetesConfig, SlurmConfig
from nodeagent.config.sections import (
    SOCKET_NAME,
    AgentConfig,
    GrpcConfig,
    JobsConfig,
    MetricsConfig,
    NvrxConfig,
    StoreConfig,
)
from nodeagent.core.catalog.settings import Settings
from nodeagent.core.model import KERNEL_LOG
from nodeagent.vendors import ChipsConfig, DriverConfig, KmsgConfig


class Config(Struct, frozen=True, kw_only=True):
    """The whole configuration; ``drivers`` has an entry for every driver, mentioned or not."""

    agent: AgentConfig = field(default_factory=AgentConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    grpc: GrpcConfig = field(default_factory=GrpcConfig)
    reset: ResetConfig = field(default_factory=ResetConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    public: PublicConfig = field(default_factory=PublicConfig)
    jobs: JobsConfig = field(default_factory=JobsConfig)
    nvrx: NvrxConfig = field(default_factory=NvrxConfig)
    kubernetes: KubernetesConfig = field(default_factory=KubernetesConfig)
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
        """Valid keys that have no effect with the others, as warnings."""
        return tuple(
            f"drivers.{name}.expected_chips = {section.expected_chips} has no effect:"
            f" drivers.{name}.enabled is false"
            for name, section in self.drivers.items()
            if isinstance(section, ChipsConfig) and section.expected_chips and not section.enabled
        )

    @property
    def record_dir(self) -> Path:
        """Where resets leave their record and evidence: next to the state; the daemon can only read it."""
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
