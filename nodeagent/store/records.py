"""The values that pass between the daemon, the store and the outlets. No I/O, no decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeagent.core.model import Answer, Carried, Event, Input, View


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreId:
    """Names a line of sequence numbers: ``uuid`` is bound to the machine id, ``epoch`` grows
    whenever numbering may have left the disk. (store id, seq) never means two different events.
    """

    uuid: str
    epoch: int

    def __str__(self) -> str:
        return f"{self.uuid}:{self.epoch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far the kernel log was read: every line up to ``seq`` of this boot is accounted for."""

    boot_id: str
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamped:
    """A stored input and when it was taken: rule clock and wall clock, nanoseconds."""

    rule_ns: int
    wall_ns: int
    input: Input


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """An event with its number and wall time. ``seq`` starts at 1."""

    seq: int
    wall_ns: int
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockAnchor:
    """The last known relation of the clocks, all nanoseconds: lets a new process carry the rule clock on."""

    boot_id: str
    boottime_ns: int
    rule_ns: int
    wall_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What one commit writes, all or nothing. ``events`` are pairs (wall time ns, event), in order.

    ``reports_damage``: with it, every damage that was found before is reported.
    """

    inputs: tuple[Stamped, ...] = ()
    events: tuple[tuple[int, Event], ...] = ()
    engine_now_ns: int = 0
    anchor: ClockAnchor | None = None
    cursors: Mapping[str, Cursor] = field(default_factory=dict)
    reports_damage: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The answer to a commit: the numbered events, under which id, and whether they are on the disk."""

    store_id: StoreId
    events: tuple[StoredEvent, ...]
    last_seq: int
    durable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What became of a damaged file: ``why`` is what was found, ``aside`` where it is kept, "" if nowhere.

    ``lost`` is what could not be read back. ``is_whole``: nothing of that keeps work off a device, but for
    what the history has as well. ``doubtful`` are cells that can be decoded, but are not as they
    were written.
    """

    why: str
    aside: str = ""
    lost: tuple[str, ...] = ()
    is_whole: bool = True
    doubtful: tuple[Carried, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of inputs: the events they gave, the answer where one was an order, and why they are not on
    the disk, "" if they are.
    """

    events: tuple[Event, ...] = ()
    answer: Answer | None = None
    not_durable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecovery:
    """What a starting daemon finds: ``carried`` (of the last compaction, with its seq), then ``inputs``.

    ``engine_now_ns`` is how far the engine had come: deadlines up to it have fired. ``damages`` are those
    that no daemon has reported yet.
    """

    store_id: StoreId
    last_seq: int
    engine_now_ns: int
    anchor: ClockAnchor | None
    cursors: Mapping[str, Cursor]
    carried: tuple[Carried, ...]
    carried_at_seq: int
    carried_at_ns: int
    inputs: tuple[Stamped, ...]
    damages: tuple[Damage, ...] = ()
    durable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What outlets show: the view as of ``seq``. Wall time = rule time + ``wall_offset_ns``."""

    view: View
    store_id: StoreId
    seq: int
    durable: bool
    wall_offset_ns: int
