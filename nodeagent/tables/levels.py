"""Which levels each kind of device may use, who may have chosen a level, and why another level is refused.

It knows no file.
"""

from collections.abc import Mapping
from enum import StrEnum

from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.model import Kind, Level


class LevelSource(StrEnum):
    """Who chose the level of a row."""

    XID_CATALOGUE = "xid_catalogue"
    SXID_TABLE = "sxid_table"
    MEMORY_GUIDE = "memory_guide"
    DCGM = "dcgm"
    NVML = "nvml"
    OPEN_DRIVER = "open_driver"
    NVSENTINEL = "nvsentinel"
    DEVICE_PLUGIN = "device_plugin"
    GPUD = "gpud"
    MINDCLUSTER = "mindcluster"
    NODEAGENT = "nodeagent"


SOURCE_NAMES: Mapping[str, str] = {
    LevelSource.XID_CATALOGUE: "NVIDIA's Xid catalogue",
    LevelSource.SXID_TABLE: "NVIDIA's table of SXids",
    LevelSource.MEMORY_GUIDE: "NVIDIA's guide to GPU memory errors",
    LevelSource.DCGM: "NVIDIA's DCGM",
    LevelSource.NVML: "NVIDIA's NVML",
    LevelSource.OPEN_DRIVER: "what NVIDIA's open kernel driver does",
    LevelSource.NVSENTINEL: "NVIDIA's NVSentinel",
    LevelSource.DEVICE_PLUGIN: "NVIDIA's device plugin for Kubernetes",
    LevelSource.GPUD: "gpud",
    LevelSource.MINDCLUSTER: "MindCluster's fault tables",
    LevelSource.NODEAGENT: "a choice of this project",
}
"""Their names for people."""

_CHIP = (
    Level.NOT_HANDLE,
    Level.SUB_HEALTH,
    Level.RESTART_REQUEST,
    Level.RESTART_BUSINESS,
    Level.FREE_RESTART_NPU,
    Level.RESTART_NPU,
    Level.PRE_SEPARATE_NPU,
    Level.SEPARATE_NPU,
)
_UNIFIEDBUS = (
    Level.NOT_HANDLE,
    Level.SUB_HEALTH,
    Level.RESTART_REQUEST_FAULT,
    Level.RESET_FAULT,
    Level.SEPARATE_FAULT,
)

LEVELS_OF_KIND: Mapping[Kind, tuple[Level, ...]] = {
    Kind.CHIP: _CHIP,
    Kind.UNIFIEDBUS: _UNIFIEDBUS,
    Kind.NODE: (Level.NOT_HANDLE, Level.PRE_SEPARATE_FAULT, Level.SEPARATE_FAULT),
    Kind.PUBLIC: (Level.NOT_HANDLE, Level.SUB_HEALTH, Level.PRE_SEPARATE_NPU, Level.SEPARATE_NPU),
    Kind.LINK: (*_UNIFIEDBUS, Level.PRE_SEPARATE_FAULT),
    Kind.HOST: (Level.NOT_HANDLE, Level.SUB_HEALTH, Level.PRE_SEPARATE_FAULT, Level.SEPARATE_FAULT),
    Kind.INSTANCE: _CHIP,
}
"""The levels on each kind. ManuallySeparateNPU is in none: only a frequency rule on chips may give it."""

DEFAULT = Level.SUB_HEALTH
"""Of a row without a level, if no table below has one for its code: jobs are informed, and nothing is taken
out of service.
"""

KINDS_OF_CODES = tuple(kind for kind in Kind if kind is not Kind.INSTANCE)
"""The kinds that a row or a rule may name: an instance has the codes of its chip."""


def objection(level: Level, kind: Kind, *, by_frequency: bool = False) -> str:
    """Why something of ``kind`` may not have ``level``, or ""."""
    if kind not in KINDS_OF_CODES:
        return f"an instance has the codes of its chip: kind {Kind.CHIP} is right"
    if level is Level.MANUALLY_SEPARATE_NPU:
        if not by_frequency:
            return f"{level} may be given by a frequency rule only"
        return "" if kind is Kind.CHIP else f"{level} is for chips, not for kind {kind}"
    if level in LEVELS_OF_KIND[kind]:
        return ""
    return f"{level} is not a level of kind {kind}; those are {', '.join(LEVELS_OF_KIND[kind])}"


def is_stricter(level: Level, than: Level) -> bool:
    return PRECEDENCE[level] > PRECEDENCE[than]
