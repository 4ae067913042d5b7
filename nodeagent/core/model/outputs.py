"""The outputs of the core, and the view of its state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodeagent.core.model.carried import Input
from nodeagent.core.model.cells import Baseline, Source
from nodeagent.core.model.condition import Condition
from nodeagent.core.model.enums import EventKind, Handling, Kind, Level, Refused, Reported, Verdict
from nodeagent.core.model.inputs import Holder
from nodeagent.core.model.jobs import JobNote, JobView
from nodeagent.core.model.reset_cells import Hold, Reset
from nodeagent.core.model.rule_cells import Promotion


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One contribution to a verdict: ``kind`` condition, promotion, hold, source or device."""

    kind: Literal["condition", "promotion", "hold", "source", "device"]
    id: str
    code: str = ""
    level: Level | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What changed or was done. ``level``, ``verdict``, ``handling``, ``reasons`` are the device's after it.

    ``at_ns`` is on the rule clock: for a deadline, the deadline. The store adds the sequence number and the
    wall time. ``condition_level`` is that of the condition or promotion concerned. ``job`` is the job that an
    event of kind ``JOB_...`` is of.
    """

    kind: EventKind
    at_ns: int
    device: str
    device_id: str
    device_kind: Kind
    level: Level
    verdict: Verdict
    handling: Handling
    subhealthy: bool = False
    observed: bool = True
    code: str = ""
    name: str = ""
    condition_id: str = ""
    condition_level: Level | None = None
    rule: str = ""
    source: str = ""
    count: int = 1
    user_induced: bool = False
    unknown: bool = False
    injected: bool = False
    userspace: bool = False
    why: str = ""
    reasons: tuple[Reason, ...] = ()
    evidence: Mapping[str, str] = field(default_factory=dict)
    network_unhealthy: bool = False
    job: JobNote | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something to be done to devices (their ids), for the ``attempt``-th time.

    ``id`` is a function of the inputs. ``holders`` are the processes that may and must be ended first.
    """

    id: str
    kind: Literal["reset"]
    devices: tuple[str, ...]
    reasons: tuple[str, ...]
    deadline_ns: int
    attempt: int = 1
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a person's order. ``ids`` are those of what it made, found there, changed or ended.

    ``refused`` is None where the order was accepted; else ``reason`` is why not, and what would help, and
    ``setting`` is the key of the configuration that refuses it, "" where none does.
    ``reported`` is what became of each fault that another system reported.
    """

    ids: tuple[str, ...] = ()
    refused: Refused | None = None
    reason: str = ""
    setting: str = ""
    reported: tuple[Reported, ...] = ()

    @property
    def accepted(self) -> bool:
        return self.refused is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one step has done. Order is a contract: records and events in one transaction, then publish, then
    act.

    ``answer`` is that to an ``Operator`` or to ``PublicFaults``, None to any other input.
    """

    records: tuple[Input, ...] = ()
    events: tuple[Event, ...] = ()
    actions: tuple[Action, ...] = ()
    answer: Answer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceView:
    """The present state of a device. ``observed_ns`` is the rule time it was last known to be observed.

    ``holders`` are the processes on it as last reported, None where no source reports them. ``claims`` are
    the jobs that claim it, as pairs (job, kind). ``source`` reads it, "" if none ever did.
    ``verdict_since_ns`` as in ``Shown``.
    """

    id: str
    name: str
    kind: Kind
    vendor: str
    level: Level
    verdict: Verdict
    handling: Handling
    subhealthy: bool
    observed: bool
    observed_ns: int
    reasons: tuple[Reason, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    holders: tuple[Holder, ...] | None = None
    claims: tuple[tuple[str, str], ...] = ()
    source: str = ""
    network_unhealthy: bool = False
    verdict_since_ns: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything the outlets may show, of one moment. ``devices`` includes the node itself, first."""

    now_ns: int = 0
    boot_id: str = ""
    digest: str = ""
    devices: tuple[DeviceView, ...] = ()
    conditions: tuple[Condition, ...] = ()
    promotions: tuple[Promotion, ...] = ()
    holds: tuple[Hold, ...] = ()
    sources: tuple[Source, ...] = ()
    resets: tuple[Reset, ...] = ()
    jobs: tuple[JobView, ...] = ()
    baselines: tuple[Baseline, ...] = ()
