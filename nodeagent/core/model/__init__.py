"""The values of nodeagent: what flows into the core, what flows out of it, and what a view of it shows.

Everything here is a frozen value. Nothing here decides, reads a clock or does I/O.

Times are integers of nanoseconds on the *rule clock* (it never steps back and is the same
line across daemon restarts and boots); only the store and the outlets turn them into wall time.

The enumerations are imported at once, the other values with the first of them that is used: a worker needs
only the enumerations, and making the classes of all values takes a third of its start.
"""

from typing import TYPE_CHECKING

from nodeagent.core.model.enums import (
    AGENT,
    ALL_DEVICES,
    CHIP_KINDS,
    KERNEL_LOG,
    NODE,
    PREVIOUS_BOOT,
    PUBLIC,
    ActionState,
    Affects,
    Assertion,
    Backing,
    CountedBy,
    EventKind,
    Handling,
    HoldKind,
    Kind,
    Level,
    Loss,
    Recovery,
    Refused,
    Reported,
    ResetMode,
    ResetStage,
    Verdict,
    decides,
)

if TYPE_CHECKING:
    from nodeagent.core.model.carried import Carried, Input
    from nodeagent.core.model.cells import (
        Absorbed,
        Baseline,
        Cell,
        Condition,
        Device,
        Era,
        Held,
        Noticed,
        Ordinal,
        Severity,
        Shown,
        Source,
        Trace,
        Withdrawn,
    )
    from nodeagent.core.model.inputs import (
        ActionResult,
        ActionStarted,
        ActiveCode,
        ActiveSet,
        BaselineSeen,
        CatalogChanged,
        Claims,
        CounterMark,
        DeviceGone,
        DeviceSeen,
        Edge,
        ExpectedSource,
        Holder,
        Holders,
        Operator,
        PublicFault,
        PublicFaults,
        Report,
        ResetsRecorded,
        Signal,
        SourceAbsent,
        SourceBack,
        SourceLost,
        Started,
        TablesRejected,
        Tick,
    )
    from nodeagent.core.model.jobs import (
        Job,
        JobBegun,
        JobEnded,
        JobNote,
        JobPolicy,
        JobSaid,
        JobStage,
        JobView,
        JobWord,
        Peer,
        Recommendation,
        Wanted,
    )
    from nodeagent.core.model.outputs import Action, Answer, DeviceView, Event, Outcome, Reason, View
    from nodeagent.core.model.reset_cells import Claimed, Hold, PastResets, Reset
    from nodeagent.core.model.rule_cells import Occurrence, Promotion, RuleCell, Sighting, Window

__all__ = [
    "AGENT",
    "ALL_DEVICES",
    "CHIP_KINDS",
    "KERNEL_LOG",
    "NODE",
    "PREVIOUS_BOOT",
    "PUBLIC",
    "Absorbed",
    "Action",
    "ActionResult",
    "ActionStarted",
    "ActionState",
    "ActiveCode",
    "ActiveSet",
    "Affects",
    "Answer",
    "Assertion",
    "Backing",
    "Baseline",
    "BaselineSeen",
    "Carried",
    "CatalogChanged",
    "Cell",
    "Claimed",
    "Claims",
    "Condition",
    "CountedBy",
    "CounterMark",
    "Device",
    "DeviceGone",
    "DeviceSeen",
    "DeviceView",
    "Edge",
    "Era",
    "Event",
    "EventKind",
    "ExpectedSource",
    "Handling",
    "Held",
    "Hold",
    "HoldKind",
    "Holder",
    "Holders",
    "Input",
    "Job",
    "JobBegun",
    "JobEnded",
    "JobNote",
    "JobPolicy",
    "JobSaid",
    "JobStage",
    "JobView",
    "JobWord",
    "Kind",
    "Level",
    "Loss",
    "Noticed",
    "Occurrence",
    "Operator",
    "Ordinal",
    "Outcome",
    "PastResets",
    "Peer",
    "Promotion",
    "PublicFault",
    "PublicFaults",
    "Reason",
    "Recommendation",
    "Recovery",
    "Refused",
    "Report",
    "Reported",
    "Reset",
    "ResetMode",
    "ResetStage",
    "ResetsRecorded",
    "RuleCell",
    "Severity",
    "Shown",
    "Sighting",
    "Signal",
    "Source",
    "SourceAbsent",
    "SourceBack",
    "SourceLost",
    "Started",
    "TablesRejected",
    "Tick",
    "Trace",
    "Verdict",
    "View",
    "Wanted",
    "Window",
    "Withdrawn",
    "decides",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from nodeagent.core.model import carried, cells, inputs, jobs, outputs, reset_cells, rule_cells

        for module in (carried, cells, inputs, jobs, outputs, reset_cells, rule_cells):
            globals().update((each, vars(module)[each]) for each in __all__ if each in vars(module))
        return globals()[name]
