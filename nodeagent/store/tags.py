"""The names under which values of the core are stored: part of the format, whatever the classes are
called.

A store outlives the version that wrote it. So a tag here never changes and never goes: a class may be
renamed, its tag may not. A new kind of input or cell needs a line; a test sees that each has one.
"""

from collections.abc import Mapping
from typing import Any, Final

from nodeagent.core import model
from nodeagent.core.rules.kinds import RAISING

INPUTS: Final[Mapping[str, type[Any]]] = {
    "Signal": model.Signal,
    "ActiveSet": model.ActiveSet,
    "Holders": model.ProcessesListed,
    "Edge": model.Edge,
    "CounterMark": model.CounterMark,
    "DeviceSeen": model.DeviceSeen,
    "BaselineSeen": model.BaselineSeen,
    "DeviceGone": model.DeviceGone,
    "SourceLost": model.SourceLost,
    "SourceBack": model.SourceBack,
    "SourceAbsent": model.SourceAbsent,
    "CatalogChanged": model.CatalogChanged,
    "TablesRejected": model.TablesRejected,
    "Operator": model.Operator,
    "Claims": model.Claims,
    "PublicFaults": model.PublicFaults,
    "JobBegun": model.JobBegun,
    "JobSaid": model.RunReported,
    "JobEnded": model.JobEnded,
    "ActionStarted": model.ActionStarted,
    "ActionResult": model.ActionResult,
    "ResetsRecorded": model.ResetsRecorded,
    "Started": model.Started,
    "Tick": model.Tick,
}
"""Tag -> kind of input, but for ``Carried``: it is stored as its cell, under ``CARRIED`` and the cell's tag.
"""

CARRIED: Final = "Carried:"

CELLS: Final[Mapping[str, type[Any]]] = {
    "Device": model.Device,
    "Condition": model.Condition,
    "Ordinal": model.Ordinal,
    "Window": model.Window,
    "Promotion": model.Promotion,
    "Sighting": model.Sighting,
    "Trace": model.Trace,
    "Absorbed": model.Absorbed,
    "Withdrawn": model.Withdrawn,
    "Noticed": model.Noticed,
    "Hold": model.Hold,
    "Reset": model.Reset,
    "Charge": model.PastResets,
    "Claimed": model.Claimed,
    "Job": model.Job,
    "Severity": model.Severity,
    "Held": model.DeviceProcesses,
    "Source": model.Source,
    "Baseline": model.Baseline,
    "Shown": model.Shown,
    "Era": model.Era,
    **{kind.tag: kind.cell for kind in RAISING},
}
"""Tag -> kind of live cell."""

OF_INPUTS: Final[Mapping[type[Any], str]] = {kind: tag for tag, kind in INPUTS.items()}
OF_CELLS: Final[Mapping[type[Any], str]] = {kind: tag for tag, kind in CELLS.items()}
