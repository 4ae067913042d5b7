"""The enumerations and names that code and documents share: one meaning each, no synonyms."""

from enum import StrEnum
from typing import Final

ALL_DEVICES = "*"
"""The device of an ``ActiveSet`` that covers every device of its source."""

NODE = "node"
"""The name of the device that represents the node itself."""

KERNEL_LOG = "kmsg"
"""The name of the source that reads the kernel's lines: they name devices of other sources."""

PREVIOUS_BOOT = "previous_boot"
"""The name of the source that reads what the kernel logged in the previous boot."""

AGENT = "agent"
"""The name of the source of what nodeagent itself finds and does."""

PUBLIC = "public"
"""The name of the source of faults that other systems found."""


class Assertion(StrEnum):
    """What a signal asserts of its fault (Ascend's terms; an Xid or a kernel line is ``once``)."""

    OCCUR = "occur"
    RECOVER = "recover"
    ONCE = "once"


class Kind(StrEnum):
    """What sort of device a code is about; each kind has its own set of levels.

    An instance is a part of a chip, with the codes and levels of its chip: no code is of that kind.
    """

    CHIP = "chip"
    UNIFIEDBUS = "unifiedbus"
    NODE = "node"
    PUBLIC = "public"
    LINK = "link"
    HOST = "host"
    INSTANCE = "instance"


CHIP_KINDS: Final = frozenset({Kind.CHIP, Kind.INSTANCE})
"""Devices on which programs run: a chip, and a part of one."""


def decides(kind: Kind | None, name: str) -> bool:
    """Whether the verdict of a device is one of those by which the whole node takes work: those of chips, and
    the node's own, which includes what any other device does to the node.

    The node is known by its name: a device may be of the node's kind, such as one that a firmware record
    names.
    """
    return kind is Kind.CHIP or name == NODE


class Level(StrEnum):
    """How a fault is to be handled."""

    NOT_HANDLE = "NotHandleFault"
    SUB_HEALTH = "SubHealthFault"
    RESTART_REQUEST = "RestartRequest"
    RESTART_BUSINESS = "RestartBusiness"
    FREE_RESTART_NPU = "FreeRestartNPU"
    RESTART_NPU = "RestartNPU"
    PRE_SEPARATE_NPU = "PreSeparateNPU"
    SEPARATE_NPU = "SeparateNPU"
    MANUALLY_SEPARATE_NPU = "ManuallySeparateNPU"
    RESTART_REQUEST_FAULT = "RestartRequestFault"
    RESET_FAULT = "ResetFault"
    PRE_SEPARATE_FAULT = "PreSeparateFault"
    SEPARATE_FAULT = "SeparateFault"


class Verdict(StrEnum):
    """May new work be placed on the device."""

    ALLOW = "ALLOW"
    UNKNOWN = "UNKNOWN"
    NO_NEW_JOBS = "NO_NEW_JOBS"
    ISOLATE = "ISOLATE"


class Handling(StrEnum):
    """What is to become of the work that runs on the device."""

    NONE = "NONE"
    JOB_STRATEGY = "JOB_STRATEGY"
    RERUN_REQUEST = "RERUN_REQUEST"
    RESTART_JOB = "RESTART_JOB"
    RESET_WHEN_IDLE = "RESET_WHEN_IDLE"
    STOP_RESET_RESTART = "STOP_RESET_RESTART"
    RESCHEDULE = "RESCHEDULE"


class Belief(StrEnum):
    """How far a fault is believed; how that changes is in ``core.faults.kernel_lines``."""

    OWN = "own"
    """The device's own driver shows it, or another source that observed it directly. A kernel line counts as
    this too where no driver reports the faults of the device.
    """

    ALONE = "alone"
    """Only a line of the kernel log reports it; the device's driver has not confirmed it yet."""

    CONTRADICTED = "contradicted"
    """Only a kernel line reports it; the driver has read the device since and does not show it."""

    DISREGARDED = "disregarded"
    """It was contradicted for too long: the line has no effect any more."""


class Affects(StrEnum):
    """Which verdicts a condition changes besides its own device's: no work is scheduled onto a port."""

    SELF = "self"
    CHIPS_BEHIND = "chips_behind"
    NODE = "node"


class CountedBy(StrEnum):
    """What the occurrences that a frequency rule counts together have in common, besides device and code.

    ``device``: nothing more. ``job``: the job that they belong to. ``place``: one place on the device, which
    different jobs met.
    """

    DEVICE = "device"
    JOB = "job"
    PLACE = "place"


class Recovery(StrEnum):
    """What a row's level means for the work on a chip: see ``core.judge.recovery_action``.

    ``level``: what the level prescribes. ``vendor``: the level names the recovery that the vendor asks for.
    ``none``: the chip needs none, whatever hit its job.
    """

    LEVEL = "level"
    VENDOR = "vendor"
    NONE = "none"


class EventKind(StrEnum):
    RAISED = "raised"
    LEVEL_CHANGED = "level_changed"
    VERDICT_CHANGED = "verdict_changed"
    CLEARED = "cleared"
    NOTICE = "notice"
    PROMOTED = "promoted"
    RELEASED = "released"
    SUPPRESSED = "suppressed"
    ISOLATED = "isolated"
    ACTION_PROPOSED = "action_proposed"
    ACTION_STARTED = "action_started"
    ACTION_FINISHED = "action_finished"
    DEVICE_SEEN = "device_seen"
    DEVICE_GONE = "device_gone"
    DEVICE_REPLACED = "device_replaced"
    SOURCE_LOST = "source_lost"
    SOURCE_BACK = "source_back"
    QUIESCED = "quiesced"
    RESUMED = "resumed"
    TABLES_RELOADED = "tables_reloaded"
    TABLES_REJECTED = "tables_rejected"
    STARTED = "started"
    JOB_BEGUN = "job_begun"
    JOB_ASKED = "job_asked"
    """It was asked to stop, or to leave this node."""
    JOB_STOPPED = "job_stopped"
    JOB_RERUN = "job_rerun"
    JOB_SUSPECTED = "job_suspected"
    JOB_SUSPENDED = "job_suspended"
    JOB_ENDED = "job_ended"
    JOB_SLOW = "job_slow"
    """A rank or a chip of it holds up the others, or no longer does."""


class ActionState(StrEnum):
    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    REFUSED = "refused"


class Refused(StrEnum):
    """Why an order is refused: it names something unknown, there is no room, or it is not possible now."""

    UNKNOWN = "unknown"
    NO_ROOM = "no_room"
    NOT_POSSIBLE = "not_possible"


class Reported(StrEnum):
    """What became of a fault in a message of another system.

    ``taken``: it opened, or occurred again. ``repeated``: it was known to be there. ``not_open``: a recovery
    of what is not there. ``outdated``: it is of an occurrence before the one that is known.
    """

    TAKEN = "taken"
    REPEATED = "repeated"
    CLOSED = "closed"
    NOT_OPEN = "not_open"
    OUTDATED = "outdated"


class Loss(StrEnum):
    """How a source is lost: it ran and can be read no more; it cannot run; or it was released on purpose."""

    NOT_READ = "not_read"
    NOT_RUNNING = "not_running"
    RELEASED = "released"


class AskAgain(StrEnum):
    """When the faults that asked for a reset which has ended may ask for another."""

    NEVER = "never"
    ONCE_UNBLOCKED = "once_unblocked"
    """Once nothing blocks it any more."""

    AT_ONCE = "at_once"


class HoldKind(StrEnum):
    """The kinds of holds on a device: what each means for its verdict is in ``core.judge.judge``."""

    ISOLATION = "isolation"
    RESET_PENDING = "reset_pending"
    QUIESCE = "quiesce"


class ResetMode(StrEnum):
    """How far resets go: not at all, as dry runs, after a person's approval, by themselves."""

    OFF = "off"
    DRY_RUN = "dry-run"
    ASK = "ask"
    ON = "on"


class ResetStage(StrEnum):
    """Where a reset is. ``announced`` runs for a fixed time, ``waiting`` until nothing blocks it."""

    ANNOUNCED = "announced"
    ASKING = "asking"
    WAITING = "waiting"
    RUNNING = "running"
    VERIFYING = "verifying"
    ENDED = "ended"
