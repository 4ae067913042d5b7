"""What a GPU showed while it was well, kept by its UUID for later workers.

    links that were up ── questions that were answered ── codes that could be judged

NVML reports the current state, not the right one: a link without a partner is as inactive as a link that
failed, and a feature that a product never had gives the same answer as one that broke. The earlier state
shows the difference. The daemon keeps it (``wire.Baseline``); an operator clears it after an intended change.
It judges nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from nodeagent import wire
from nodeagent.wire import MAX_BASELINE

Question = tuple[str | int, ...]
"""A function of NVML and what it is asked for; of a field ``("field", id, scope)``."""

FIELD: Final = "field"

Mode = tuple[str | None, ...]
"""What the driver answers depends on: its version, MIG, ECC. None: not known."""


class KnownLinks(msgspec.Struct, omit_defaults=True):
    """``up``: those that were up once. ``accepted``: those that were down when an operator accepted this.
    ``count``: how many the GPU has. ``switched``: they lead to switches. ``peers`` is the most that another
    GPU of its product has up. ``in_doubt``: a fault of theirs was open before anything was known. ``group``:
    with which others the GPU is reset because of them.
    """

    up: set[int] = msgspec.field(default_factory=set)
    accepted: set[int] = msgspec.field(default_factory=set)
    count: int | None = None
    switched: bool = False
    peers: int = 0
    peers_switched: bool = False
    in_doubt: bool = False
    group: str = ""


class _Content(msgspec.Struct, omit_defaults=True):
    """As it is stored: a field that a later version adds needs a default."""

    mode: tuple[str | None, ...] = ()
    calls: set[str] = msgspec.field(default_factory=set)
    fields: dict[str, int] = msgspec.field(default_factory=dict)
    judged: set[str] = msgspec.field(default_factory=set)
    unseen: set[str] = msgspec.field(default_factory=set)
    links: KnownLinks = msgspec.field(default_factory=KnownLinks)
    c2c_links: int = 0
    c2c_accepted: int = 0


_encoder: Final = msgspec.json.Encoder(order="deterministic")
# Made at import: the first use of a type by several threads at once, one for each GPU, crashed in msgspec.
_decoder: Final = msgspec.json.Decoder(_Content)


class GpuBaseline:
    """That of one GPU. ``open_codes`` are open on it though nothing was kept of it."""

    def __init__(self, kept: wire.Baseline | None = None, open_codes: Iterable[str] = ()) -> None:
        self.number = 0 if kept is None else kept.number
        self.accepts_links = self.accepts_c2c = kept is not None and not kept.content
        """An operator has accepted what is seen next."""
        self._content = _Content()
        if kept is not None and kept.content:
            self._content = _decoded(kept.content)
        self._content.unseen.update(code.partition(".")[0] for code in open_codes)
        self._reported = ""

    @property
    def links(self) -> KnownLinks:
        return self._content.links

    @property
    def c2c_links(self) -> int:
        """How many C2C links the GPU has once had."""
        return self._content.c2c_links

    @property
    def c2c_accepted(self) -> int:
        """How many of them a person has taken for right though they are down."""
        return self._content.c2c_accepted

    def see_c2c(self, links: int, up: int) -> None:
        self._content.c2c_links = links if self.accepts_c2c else max(self._content.c2c_links, links)
        if self.accepts_c2c:
            self._content.c2c_accepted, self.accepts_c2c = links - up, False

    def begin(self, mode: Mode) -> None:
        """The GPU is in this mode. In another one than before its driver may answer less than it did."""
        before = self._content.mode
        merged = tuple(
            now if now is not None else (before[at] if at < len(before) else None)
            for at, now in enumerate(mode)
        )
        if before and any(was is not None and was != now for was, now in zip(before, merged, strict=False)):
            self._content.calls.clear()
            self._content.fields.clear()
            self._content.unseen |= self._content.judged
            self._content.judged.clear()
        self._content.mode = merged

    # ------------------------------------------------------------------ questions and codes

    def was_answered(self, question: Question) -> bool:
        """In this mode."""
        if question[0] == FIELD:
            _, number, scope = question
            return bool(self._content.fields.get(str(number), 0) >> _bit(scope) & 1)
        return _call(question) in self._content.calls

    def answered(self, question: Question) -> None:
        if question[0] == FIELD:
            _, number, scope = question
            fields = self._content.fields
            fields[str(number)] = fields.get(str(number), 0) | 1 << _bit(scope)
        else:
            self._content.calls.add(_call(question))

    def was_judged(self, code: str) -> bool:
        """In this mode."""
        return code in self._content.judged

    def is_unseen(self, code: str) -> bool:
        """Whether a fault of this code may be open that this reader has not seen well since."""
        return code in self._content.unseen

    def judge(self, codes: Iterable[str]) -> None:
        """The readers of these codes have answered."""
        self._content.judged.update(codes)
        self._content.unseen.difference_update(codes)

    # ------------------------------------------------------------------ to the daemon

    def news(self, *, even_if_known: bool = False) -> wire.Baseline | None:
        """What the daemon must keep; None if it has not changed since the last report."""
        text = self._text()
        if text == self._reported and not even_if_known:
            return None
        self._reported = text
        return wire.Baseline(number=self.number, content=text)

    def _text(self) -> str:
        text = _encoder.encode(self._content).decode()
        if len(text) <= MAX_BASELINE:
            return text
        # What was up matters more than what was answered.
        self._content.calls.clear()
        self._content.fields.clear()
        return _encoder.encode(self._content).decode()


class GpuBaselines:
    """Those of all GPUs of the node, by UUID. ``kept`` and ``open_codes`` are as the daemon gives them."""

    def __init__(
        self,
        kept: Mapping[str, wire.Baseline] | None = None,
        open_codes: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self._kept = kept or {}
        self._open_codes = open_codes or {}
        self._known: dict[str, GpuBaseline] = {}

    def of(self, uuid: str) -> GpuBaseline:
        """Nothing is kept of a GPU without a UUID."""
        if not uuid:
            return GpuBaseline()
        if uuid not in self._known:
            self._known[uuid] = GpuBaseline(self._kept.get(uuid), self._open_codes.get(uuid, ()))
        return self._known[uuid]


def _decoded(content: str) -> _Content:
    """Where it cannot be read, nothing is known."""
    try:
        return _decoder.decode(content)
    except msgspec.DecodeError:
        return _Content()


def _call(question: Question) -> str:
    return "/".join(map(str, question))


def _bit(scope: str | int) -> int:
    """Of a field's scope, which is the number of a link."""
    return int(scope) & 63
