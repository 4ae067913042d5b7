"""The messages between the daemon and a worker process: one JSON object a line, both ways.

Every message is a tagged struct whose fields carry their bounds, so that decoding is the check: a
worker that lies, babbles or is corrupted yields ``ProtocolError`` and nothing else. All stamps are
nanoseconds of CLOCK_BOOTTIME as the worker read it; only the daemon knows the rule clock.

It does no I/O, and it names no source: the sender is known from the pipe, never from the text.

    daemon -> worker                         worker -> daemon
    Configure   always the first line        Hello        the driver is open; its devices
    Poll        one call per device asked    Unavailable  it could not be opened; the worker exits
    Patterns    after a reload               Devices      the devices changed
                                             Batch        signals, lost records, cursor
                                             Reply        to one device of one Poll
                                             CaughtUp     the history of the source is read
                                             Lost         the source went away; the worker retries
                                             Renew        another process would see more
"""

from collections.abc import Iterable
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from nodeagent.core.model import Assertion, Kind

MAX_LINE_BYTES: Final = 4 * 1024 * 1024
MAX_SIGNALS: Final = 512
MAX_DEVICES: Final = 256
MAX_TEXT: Final = 2048
MAX_EVIDENCE: Final = 16
MAX_BASELINE: Final = 8192

SOURCE: Final = "*"
"""The device in ``Poll`` and ``Reply`` that means the source as a whole, answered by the thread that reads or
lists it.
"""

Name = Annotated[str, Meta(min_length=1, max_length=128, pattern="^[!-~]+$")]
ReadingName = Annotated[str, Meta(min_length=1, max_length=128)]
"""Without a pattern: there are a thousand a second, and the metrics make them fit."""
Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Natural = Annotated[int, Meta(ge=0, le=2**62)]
ErrorNumber = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Evidence = Annotated[dict[Name, Text], Meta(max_length=MAX_EVIDENCE)]
Attributes = Annotated[dict[Name, Text], Meta(max_length=64)]


Setting = str | int | float | bool | tuple[str, ...] | dict[str, tuple[str, ...]]
"""A key of a driver's section of the configuration: a value, a list of texts, or such lists by name."""


class ProtocolError(ValueError):
    """A line that is no message: the text says what was wrong with it, and shows its beginning."""


class _Message(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


# --------------------------------------------------------------------------- parts


class Pattern(_Message, frozen=True):
    """A kernel-log pattern as the tables have it (see ``core.catalog.catalog.Pattern``)."""

    id: str
    code: str
    regex: str
    device: str
    unless: str = ""
    find: str = ""
    unnamed: str = ""
    assertion: Assertion = Assertion.ONCE
    continuation: bool = False
    part: str = ""


class Cursor(_Message, frozen=True):
    """How far the source was read before: every record up to ``seq`` of that boot is accounted for."""

    boot_id: str
    seq: Natural


class Device(_Message, frozen=True):
    """A device the driver can see. ``identity`` is the part's own id, "" where it cannot be read."""

    device: Name
    kind: Kind
    vendor: Name
    identity: Text = ""
    attributes: Attributes = {}


class Missing(_Message, frozen=True):
    """A device that should be there, by the configuration or PCI, and is not."""

    device: Name
    reason: Text


class Signal(_Message, frozen=True):
    """A raw report; ``severity`` is Ascend's, 0..3."""

    device: Name
    code: Name
    assertion: Assertion = Assertion.ONCE
    severity: Annotated[int, Meta(ge=0, le=3)] | None = None
    count: Annotated[int, Meta(ge=1, le=2**53)] = 1
    first_ns: Natural = 0
    last_ns: Natural = 0
    evidence: Evidence = {}
    backdated: bool = False
    trusted: bool = True


class Active(_Message, frozen=True):
    """A code that is active now. ``evidence``: what else is known of it."""

    code: Name
    severity: Annotated[int, Meta(ge=0, le=3)] | None = None
    evidence: Evidence = {}


class DeviceUser(_Message, frozen=True):
    """A process on the device; ``start_time`` in clock ticks since boot distinguishes reused pids."""

    pid: Natural
    start_time: Natural
    command: Text
    job: Text = ""


class Baseline(_Message, frozen=True):
    """What a driver has seen of a part while it was well, for the workers that come after it: ``content``, in
    its own words. ``number`` is that of the baseline that the worker was given, which a person may have ended
    since. Empty ``content``: what the driver sees next is right.
    """

    number: Natural = 0
    content: Annotated[str, Meta(max_length=MAX_BASELINE)] = ""


Identity = Annotated[str, Meta(min_length=1, max_length=256)]


# --------------------------------------------------------------------------- daemon -> worker


class Configure(_Message, frozen=True, tag="configure"):
    """The first line. ``config`` is the driver's section of the configuration; devices in ``skip`` are
    not to be touched.

    ``baselines`` are kept of earlier workers, by the identity of the part. ``open_codes`` are faults of the
    source that are open on parts of which none is kept: a worker that has not seen them well ends none.
    """

    driver: str
    boot_id: str
    config: dict[str, Setting] = {}
    patterns: tuple[Pattern, ...] = ()
    cursor: Cursor | None = None
    skip: tuple[str, ...] = ()
    baselines: Annotated[dict[Identity, Baseline], Meta(max_length=MAX_DEVICES)] = {}
    open_codes: Annotated[dict[Identity, tuple[Name, ...]], Meta(max_length=MAX_DEVICES)] = {}


class Poll(_Message, frozen=True, tag="poll"):
    """Ask each of ``devices`` once; each answers for itself with a ``Reply`` of this ``id``."""

    id: Natural
    devices: Annotated[tuple[str, ...], Meta(max_length=MAX_DEVICES + 1)]


class Patterns(_Message, frozen=True, tag="patterns"):
    """New patterns, all of them, in order."""

    patterns: tuple[Pattern, ...]


# --------------------------------------------------------------------------- worker -> daemon


class _Population(_Message, frozen=True):
    """All devices of the source, and all that are missing, as of now."""

    devices: Annotated[tuple[Device, ...], Meta(max_length=MAX_DEVICES)] = ()
    missing: Annotated[tuple[Missing, ...], Meta(max_length=MAX_DEVICES)] = ()


class Devices(_Population, frozen=True, tag="devices"):
    """The devices are these now, and no others."""


class Hello(_Population, frozen=True, tag="hello"):
    """The driver is open. ``follows``: it also reads a history and will say ``CaughtUp``."""

    follows: bool = False


class Unavailable(_Message, frozen=True, tag="unavailable"):
    """The driver could not be opened, or has to be opened again; the worker ends. ``absent``: there is
    nothing here to open (no library, no file). ``missing``: devices that should be there. ``code``: of a
    fault of the node that this is; the next worker that is open says when it is over.
    """

    reason: Text
    errno: ErrorNumber = 0
    absent: bool = False
    missing: Annotated[tuple[Missing, ...], Meta(max_length=MAX_DEVICES)] = ()
    code: Name | None = None


class Batch(_Message, frozen=True, tag="batch"):
    """Signals in order. With ``cursor``, everything up to that record is accounted for by this and
    earlier batches; ``lost`` records of it were overwritten before they could be read.
    """

    signals: Annotated[tuple[Signal, ...], Meta(max_length=MAX_SIGNALS)] = ()
    lost: Natural = 0
    cursor: Natural | None = None


class Reply(_Message, frozen=True, tag="reply"):
    """One device's answer. ``error`` non-empty: the call came back, with a failure.

    ``active`` None: the driver has no such list. ``complete`` false: the list may lack codes; ``unread``: it
    lacks these only, which could not be asked for. Not ``measured``: no readings were taken, the last ones
    hold. ``holders`` None: unknown. ``baseline``: what is to be kept of the part with ``identity``, None:
    what is kept already.
    """

    id: Natural
    device: Name
    begun_ns: Natural
    took_ns: Natural
    active: Annotated[tuple[Active, ...], Meta(max_length=1024)] | None = None
    complete: bool = True
    unread: Annotated[tuple[Name, ...], Meta(max_length=64)] = ()
    readings: Annotated[dict[ReadingName, float], Meta(max_length=512)] = {}
    measured: bool = True
    holders: Annotated[tuple[DeviceUser, ...], Meta(max_length=1024)] | None = None
    error: Text = ""
    errno: ErrorNumber = 0
    identity: Text = ""
    baseline: Baseline | None = None


class CaughtUp(_Message, frozen=True, tag="caught_up"):
    """Everything that lay in the source at ``begun_ns`` has been read and sent. ``active``: all codes
    that are active by it, on no matter which device; None: the source has no such list.

    A source that lists no devices may name the ``device`` of another on which its codes are active, such as
    the node: then they open faults there too. ``complete`` false: the list may lack codes.
    """

    begun_ns: Natural
    active: Annotated[tuple[Active, ...], Meta(max_length=1024)] | None = None
    device: Name = SOURCE
    complete: bool = True


class Lost(_Message, frozen=True, tag="lost"):
    """The source cannot be read for now; ``CaughtUp`` says when it can again."""

    reason: Text
    errno: ErrorNumber = 0


class Renew(_Message, frozen=True, tag="renew"):
    """Another process would see what this one cannot: start one, and let it go on in place of this one once
    it is ready and lists enough: all devices that this one does, more, or any. Said again while it is so.
    """

    reason: Text
    lists: Literal["all", "more", "any"] = "all"


Request = Configure | Poll | Patterns
Following = Batch | CaughtUp | Lost | Renew
"""What a driver reports itself; the worker reports all else."""

Report = Hello | Unavailable | Devices | Reply | Following

_Decoded = TypeVar("_Decoded")

_encoder = msgspec.json.Encoder()
_orders: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_reports: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)


def as_patterns(patterns: Iterable[object]) -> tuple[Pattern, ...]:
    """The patterns of a catalog as a worker takes them."""
    return msgspec.convert(tuple(patterns), tuple[Pattern, ...], from_attributes=True)


def encode(message: Request | Report) -> bytes:
    """One line, newline included. Raises ``ProtocolError`` if it is longer than the other side reads."""
    line = _encoder.encode(message) + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise ProtocolError(
            f"{type(message).__name__} of {len(line)} bytes; at most {MAX_LINE_BYTES} are sent"
        )
    return line


def decode_request(line: bytes) -> Request:
    """A request of the daemon. Raises ``ProtocolError``."""
    return _decode(_orders, line)


def decode_report(line: bytes) -> Report:
    """A report of a worker. Raises ``ProtocolError``, whatever the bytes are."""
    return _decode(_reports, line)


def _decode(decoder: msgspec.json.Decoder[_Decoded], line: bytes) -> _Decoded:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"{error}; the line begins {line[:80]!r}") from error
