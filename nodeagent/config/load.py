"""Finds, reads and checks nodeagent.toml and its drop-ins. An unknown key is an error.

All problems are reported together. Each file must be valid by itself, and all of them together.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from nodeagent.config.config import Config
from nodeagent.config.layers import Layers, drop_ins
from nodeagent.config.public import read_public
from nodeagent.config.reset import ResetConfig
from nodeagent.config.schedulers import KubernetesConfig, SlurmConfig
from nodeagent.config.sections import (
    AgentConfig,
    GrpcConfig,
    JobsConfig,
    MetricsConfig,
    NvrxConfig,
    StoreConfig,
)
from nodeagent.core.model import PREVIOUS_BOOT, Level
from nodeagent.toml.fields import nearest, read_form, refuse_unknown_keys, shown
from nodeagent.toml.lines import KeyPath
from nodeagent.toml.problem import Problem, Problems
from nodeagent.toml.source import read_source
from nodeagent.vendors import DRIVERS, DriverConfig

DEFAULT_PATH = Path("/etc/nodeagent/nodeagent.toml")
PATH_VARIABLE = "NODEAGENT_CONFIG"
SOCKET_PATH_LIMIT_BYTES = 107
"""``sun_path`` of a unix socket holds 108 bytes with its end mark (unix(7))."""

_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s\x00-\x1f\x7f:\[\]]*):(\d{1,5})")


class ConfigError(Exception):
    """The configuration cannot be used; str() is one line for each problem."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


SECTIONS: Mapping[str, type[Struct]] = {
    "agent": AgentConfig,
    "metrics": MetricsConfig,
    "grpc": GrpcConfig,
    "reset": ResetConfig,
    "store": StoreConfig,
    "jobs": JobsConfig,
    "nvrx": NvrxConfig,
    "kubernetes": KubernetesConfig,
    "slurm": SlurmConfig,
}


def config_file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The one named, else ``$NODEAGENT_CONFIG``, else that at the default place; None where there is none."""
    if path is None and (named := environ.get(PATH_VARIABLE)):
        path = Path(named)
    if path is None and DEFAULT_PATH.exists():
        path = DEFAULT_PATH
    return path


@dataclass(frozen=True, slots=True)
class Read:
    """A configuration, and the files that it comes from."""

    config: Config
    layers: Layers


def load_config(path: Path | None, environ: Mapping[str, str]) -> Config:
    """As ``read_config``, without the files."""
    return read_config(path, environ).config


def read_config(path: Path | None, environ: Mapping[str, str]) -> Read:
    """Reads the file that ``config_file`` finds, and its drop-ins; a key that none sets has its default.

    Raises ConfigError with every problem of the files; a file that was named must exist.
    """
    problems = Problems()
    files = config_files(path, environ, problems.add)
    sources = [source for file in files if (source := read_source(file, problems.add)) is not None]
    return _checked(Layers(sources), problems)


def read_alone(file: Path) -> Read:
    """That file without any drop-in. Raises ConfigError."""
    problems = Problems()
    source = read_source(file, problems.add)
    return _checked(Layers(() if source is None else (source,)), problems)


def config_files(
    path: Path | None, environ: Mapping[str, str], report: Callable[[Problem], None]
) -> list[Path]:
    """Those that are read, in their order. What is wrong with the folder of the drop-ins is reported."""
    file = config_file(path, environ)
    return [*([] if file is None else [file]), *drop_ins(file or DEFAULT_PATH, report)]


def where_set(setting: str, path: Path | None, environ: Mapping[str, str]) -> str:
    """The file that sets a key such as ``reset.mode`` now, else the first file in which it could be set."""

    def ignore(_reported_by_a_reload: Problem) -> None:
        pass

    files = config_files(path, environ, ignore)
    layers = Layers([source for file in files if (source := read_source(file, ignore)) is not None])
    return layers.file_of(tuple(setting.split("."))) or str(config_file(path, environ) or DEFAULT_PATH)


def _checked(layers: Layers, problems: Problems) -> Read:
    """Raises ConfigError."""
    config = None if problems else _read(layers, problems)
    if config is None or problems:
        raise ConfigError(problems.found())
    return Read(config, layers)


def _read(layers: Layers, problems: Problems) -> Config | None:
    report = problems.of(layers.problem)
    sections = dict[str, Any]()
    for source in layers.sources:
        sections = _read_sections(source.data, problems.of(source.problem))
    if len(layers.sources) != 1 and not problems:
        sections = _read_sections(layers.data(), report)
    if problems:
        return None
    config = Config(**sections)
    _check(config, report)
    return config


def _read_sections(data: Mapping[str, Any], report: Callable[[KeyPath, str], None]) -> dict[str, Any]:
    """The fields of ``Config``, None for those of which something wrong was reported."""
    refuse_unknown_keys(data, (*SECTIONS, "public", "drivers"), (), report)
    sections: dict[str, Any] = {}
    for name, form in SECTIONS.items():
        sections[name] = read_form(form, data.get(name, {}), (name,), report)
    sections["public"] = read_public(data.get("public", {}), report)
    sections["drivers"] = _read_drivers(data.get("drivers", {}), report)
    return sections


def _read_drivers(tables: object, report: Callable[[KeyPath, str], None]) -> dict[str, DriverConfig]:
    if not isinstance(tables, Mapping):
        report(("drivers",), f"{shown(tables)} is given where tables such as [drivers.kmsg] are needed")
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
        *((("nvrx", "socket", config.nvrx.socket),) if config.nvrx.socket else ()),
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
