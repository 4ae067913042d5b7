"""What the daemon asks of the process of a reset, and what that answers: which devices and why, never how.

The daemon watches devices with few rights, and may be in wrong hands; the process does what it does as root.
So a request names devices, and everything that decides what is done to them is read elsewhere: see
``allowed``. What the form below does not know is refused.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from nodeagent.core.model import ActionState

MAX_BYTES: Final = 4 << 20
"""The size of a request or a result."""

MAX_REASON: Final = 1000

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:")
_MAX_NAME: Final = 200

# "\Z", for "$" would let a newline pass at the end.
ActionId = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9._:-]{1,128}/reset#[0-9]{1,10}\Z")]
Name = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9._:-]{1,64}\Z")]
Identity = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9._:-]{0,128}\Z")]
Address = Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7])?\Z")]
Code = Annotated[str, Meta(pattern=r"\A[ -~]{1,128}\Z")]


class Device(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A chip: its name, its own id and its PCI address, "" where they were never read."""

    name: Name
    identity: Identity = ""
    pci: Address = ""


class Process(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``start_time`` in clock ticks since boot distinguishes a pid that was used again."""

    pid: Annotated[int, Meta(ge=2, le=2**31)]
    start_time: Annotated[int, Meta(ge=1, le=2**62)]


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reset of ``devices``, the one that asked first. ``deadline_ns`` is on CLOCK_BOOTTIME.

    ``once``: an operator has ordered it, where the configuration has none done by itself. ``ended_first`` are
    processes of the job that is to be ended for it. ``readings`` and ``events`` (each as JSON) are for the
    evidence.
    """

    action: ActionId
    attempt: Annotated[int, Meta(ge=1, le=100)]
    vendor: Name
    devices: Annotated[tuple[Device, ...], Meta(min_length=1, max_length=256)]
    reasons: Annotated[tuple[Code, ...], Meta(max_length=256)] = ()
    once: bool = False
    deadline_ns: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    ended_first: Annotated[tuple[Process, ...], Meta(max_length=4096)] = ()
    readings: Mapping[str, Mapping[str, float]] = {}
    events: tuple[str, ...] = ()


class Step(Struct, frozen=True, kw_only=True):
    """What was begun, and how long after the process itself."""

    what: str
    after_s: float


class Result(Struct, frozen=True, kw_only=True):
    """How an attempt went."""

    state: Literal["done", "failed", "timed_out", "refused"]
    reason: str
    steps: tuple[Step, ...] = ()

    def summary(self) -> str:
        """The result in one line, with the times."""
        steps = "; ".join(f"{step.what} at {step.after_s:.1f} s" for step in self.steps)
        return f"{self.reason} ({steps})" if steps else self.reason

    @property
    def action_state(self) -> ActionState:
        return ActionState(self.state)


def name_of(action: str, attempt: int) -> str:
    """The name of the files of an attempt: no "/" is in it, nor what else a path reads. Raises
    ``ValueError``.
    """
    return plain(f"{action}.{attempt}")


def plain(text: str) -> str:
    """As part of a file's name. Raises ``ValueError``."""
    quoted = "".join(c if c in _PLAIN else "".join(f"_{byte:02x}" for byte in c.encode()) for c in text)
    if not is_plain(quoted):
        raise ValueError(f"{text!r} cannot be the name of a file")
    return quoted


def is_plain(name: str) -> bool:
    """Whether it may stand in a path as it is."""
    return 0 < len(name) <= _MAX_NAME and not name.startswith(".") and set(name) <= _PLAIN | {"_"}


def printable(text: str) -> str:
    """As a hook, the journal and the daemon may have it, also where a vendor's tool or a file said it."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)[:MAX_REASON]


def decoded(content: bytes, name: str) -> Request:
    """The request in a file of that name. Raises ``ValueError``."""
    request = msgspec.json.decode(content, type=Request)
    if name_of(request.action, request.attempt) != name:
        raise ValueError(f"it is for {request.action}, attempt {request.attempt}, which has another name")
    return request
