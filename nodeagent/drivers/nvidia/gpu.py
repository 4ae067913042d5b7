"""One GPU: its identity, everything that one poll reads of it, and which questions it does not answer.

    identity ── state: active codes ── telemetry: readings ── processes: users

All calls are made by the thread that polls the GPU, except for its events and its first identification. Each
poll asks for the recovery action, which covers everything that the driver wants done, and for the compute
processes. Everything else is read at every ``SELDOM``-th poll or after an Xid, and reported with each: the
GPU's own processor answers it while the lock of all GPUs is held, so jobs wait for it.

    failed, or refused though it was answered before ──lasting──> attributes and readings of the GPU

A question that fails for a single poll is not shown, so that the description of the GPU does not change each
time.
"""

import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import pynvml
from msgspec.structs import replace

from nodeagent.drivers.api import CallFailed, Reading
from nodeagent.drivers.nvidia import identity
from nodeagent.drivers.nvidia.events import EventOwner
from nodeagent.drivers.nvidia.identity import LINKED
from nodeagent.drivers.nvidia.nvml.baseline import Question
from nodeagent.drivers.nvidia.nvml.calls import Calls, GpuFault, GpuHung, GpuReadings, name_of, words_of
from nodeagent.drivers.nvidia.part import RECOVERY_CODES, Codes, GpuPart, Surroundings
from nodeagent.wire import Active, Device

LASTING: Final = 3
"""So many slow polls one after the other."""

MAX_TEXT: Final = 250

QUESTIONS: Final = "unanswered"
CODES: Final = "unjudged"
"""The attributes' keys; their readings have the same names."""


class Lasting:
    """Of things that are seen poll by poll, those that last. Pure."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._polls: dict[str, int] = {}

    def see(self, now: Mapping[str, str]) -> Mapping[str, str]:
        """Each with its text."""
        for name in {*now, *self._shown, *self._polls}:
            if (name in now) == (name in self._shown):
                self._polls.pop(name, None)
                continue
            self._polls[name] = self._polls.get(name, 0) + 1
            if self._polls[name] < LASTING:
                continue
            del self._polls[name]
            if name in now:
                self._shown[name] = now[name]
            else:
                del self._shown[name]
        return self._shown


class Unanswered:
    """Those of one GPU. ``attributes`` and ``readings`` are what is shown of them."""

    def __init__(self) -> None:
        self.attributes: Mapping[str, str] = {}
        self.readings: Mapping[str, float] = {}
        self._questions = Lasting()
        self._codes = Lasting()

    def see(self, questions: Mapping[Question, int], codes: Iterable[str]) -> bool:
        """At each slow poll: questions with NVML's number, and codes that cannot be judged. Whether what is
        shown has changed.
        """
        asked = self._questions.see({words_of(each): name_of(number) for each, number in questions.items()})
        judged = self._codes.see(dict.fromkeys(codes, ""))
        before, self.attributes = self.attributes, _attributes(asked, sorted(judged))
        self.readings = {
            QUESTIONS: float(len(asked)),
            **{f"{CODES}.{code}": 1.0 for code in judged},
        }
        return before != self.attributes


def _attributes(questions: Mapping[str, str], codes: Iterable[str]) -> dict[str, str]:
    texts = [f"{question} {answer}" for question, answer in sorted(_together(questions).items())]
    found = {}
    if texts:
        found[QUESTIONS] = _cut(texts)
    if names := ",".join(codes):
        found[CODES] = names
    return found


def _together(questions: Mapping[str, str]) -> dict[str, str]:
    """The same question about several links as one."""
    numbers: dict[tuple[str, str], list[str]] = {}
    for question, answer in questions.items():
        name, _, about = question.partition("/")
        numbers.setdefault((name, answer), []).append(about)
    return {_about(name, about): answer for (name, answer), about in numbers.items()}


def _about(name: str, about: Sequence[str]) -> str:
    if len(about) > 1:
        return f"{name} (x{len(about)})"
    return f"{name}/{about[0]}" if about[0] else name


def _cut(texts: list[str]) -> str:
    text = ", ".join(texts)
    shown = len(texts)
    while len(text) > MAX_TEXT:
        shown -= 1
        text = ", ".join([*texts[:shown], f"and {len(texts) - shown} more"])
    return text


SELDOM: Final = 5
"""Polls from one that asks for everything to the next; those of the GPUs take turns."""

RESPITE: Final = 4.0
"""A GPU whose call hung is left alone for so many times as long: each try holds up all other GPUs."""

DESCRIBE: Final = 60
"""At every so many polls the GPU is described again."""

SAY_AGAIN: Final = 12
"""At every so many slow polls its baseline is sent again: the daemon takes it only for a listed GPU."""


class Gpu:
    """One GPU, known by its index. ``device`` is how it was last described."""

    def __init__(self, index: int, around: Surroundings) -> None:
        self.device: Device = identity.unread(index)
        self._index = index
        self._around = around
        self._part: GpuPart | None = None
        self._refused_before = 0
        self._turn = 0
        self._slow_polls = 0
        self._hung: GpuHung | None = None
        self._again_s = 0.0
        self._unread: frozenset[str] = frozenset()
        self._described = self.device
        self._unanswered = Unanswered()

    @property
    def refused(self) -> int:
        """How many values were refused."""
        part = self._part
        now = part.calls.refused + part.events.refused if part is not None else 0
        return self._refused_before + now

    def open(self) -> None:
        """Takes seconds where nothing keeps it initialised. Raises ``GpuFault`` and ``CallFailed``."""
        self._handle()

    def identify(self) -> None:
        """Read its identity. Raises ``GpuFault`` and ``CallFailed``."""
        self._identify(listen=False)

    def poll(self) -> Reading:
        """Everything. Raises ``CallFailed`` where it answers nothing, or is no longer there to answer."""
        if self._hung is not None and time.monotonic() < self._again_s:
            raise self._hung
        codes: list[str] = []
        values: dict[str, float] = {}
        try:
            if self._part is None or self._turn % DESCRIBE == 0:
                self._identify(listen=True)
            return self._read(self._same_part(), codes, values)
        except GpuFault as fault:
            self.news()
            active = tuple(Active(code=code) for code in (*codes, fault.code))
            return Reading(active=active, complete=False, readings=values)
        except GpuHung as hung:
            self._hung, self._again_s = hung, time.monotonic() + RESPITE * hung.took_s
            self.news()
            raise
        except CallFailed:
            self.news()
            raise

    def news(self) -> None:
        """All is asked at the next poll: something has happened to it, or this one has reported nothing."""
        if self._part is not None:
            self._part.news()

    def owner(self) -> EventOwner | None:
        """Whose events those of its handle are."""
        return None if self._part is None else self._part.owner

    def end(self) -> None:
        if self._part is not None:
            self._part.events.end()

    # ------------------------------------------------------------------ one poll

    def _read(self, part: GpuPart, found: list[str], values: dict[str, float]) -> Reading:
        """``found`` and ``values`` are filled as they are read: a fault midway takes none back."""
        calls = part.calls
        readings, codes = GpuReadings(calls, values), Codes(calls, part.baseline)
        part.events.heal()
        codes.take(RECOVERY_CODES, lambda: part.recovery.each_second(readings))
        found += codes.active
        if found != part.wanted:
            part.news()
        is_slow = self._is_slow(part)
        if is_slow:
            # An Xid that comes meanwhile asks for another time.
            part.asked = False
            part.slow = part.seldom(self.device)
        users = part.processes.users()
        if calls.failed and not (calls.answered or is_slow):
            # Maybe it answers nothing at all.
            is_slow, part.slow = True, part.seldom(self.device)
        if calls.failed and not calls.answered:
            raise CallFailed(calls.failed[0], errno=calls.failed_number)
        self._turn += 1
        part.wanted = list(found)
        self._report_lost(codes.lost | part.slow.lost)
        baseline = None
        if is_slow:
            self._slow_polls += 1
            part.see_events()
            if self._unanswered.see(calls.unanswered, codes.lost | part.slow.lost):
                self._show()
            baseline = part.baseline.news(even_if_known=self._slow_polls % SAY_AGAIN == 0)
        return Reading(
            active=tuple({**codes.active, **part.slow.active}.values()),
            unread=tuple(sorted(codes.unread | part.slow.unread)),
            readings={**part.slow.values, **self._unanswered.readings, **values} if is_slow else {},
            measured=is_slow,
            users=users,
            identity=self.device.identity if baseline is not None else "",
            baseline=baseline if self.device.identity else None,
        )

    def _is_slow(self, part: GpuPart) -> bool:
        """Whether this poll asks for everything."""
        return part.asked or (self._turn + self._index) % SELDOM == 0

    def _report_lost(self, lost: Collection[str]) -> None:
        """As it changes, for the log."""
        if lost != self._unread:
            self._unread = frozenset(lost)
            what = ", ".join(sorted(lost)) or "nothing any more"
            print(f"{self.device.device}: cannot be asked for {what}", file=sys.stderr, flush=True)

    # ------------------------------------------------------------------ identity

    def _identify(self, *, listen: bool) -> None:
        """``listen``: to another part's events before it is reported that there is one."""
        handle = self._handle()
        calls = Calls(handle)
        described = identity.describe(self._index, calls, self._around.pci, switches=self._around.switches)
        if calls.failed and not calls.answered:
            raise CallFailed(calls.failed[0], errno=calls.failed_number)
        attributes = {**described.attributes, **self._around.versions}
        before = self._described
        if before.identity and described.identity in ("", before.identity):
            # What could not be read this time has not gone for that.
            described = replace(described, identity=before.identity)
            attributes = {**before.attributes, **attributes}
        kept = self._around.baselines.of(described.identity).links
        if kept.group == LINKED:
            # Links that have gone down joined it to others, and do so again after the reset.
            attributes["group"] = LINKED
        kept.group = attributes.get("group", "")
        described = replace(described, attributes=attributes)
        part = self._part
        if part is None or _is_another(before, described):
            part = self._take_up(handle, described)
            if listen:
                part.events.heal()
        attributes.pop("events", None)
        if not part.events.supported:
            attributes["events"] = "none"
        if part.recovery.decides():
            attributes["recovery_action"] = "told"
        self._described = described
        self._show()
        self._refused_before += calls.refused

    def _show(self) -> None:
        """With what it does not answer."""
        attributes = {**self._described.attributes, **self._unanswered.attributes}
        self.device = replace(self._described, attributes=attributes)

    def _handle(self) -> Any:
        calls = Calls(self._index)
        handle = calls.ask(pynvml.nvmlDeviceGetHandleByIndex)
        if handle is None:
            raise CallFailed(calls.failed[0] if calls.failed else f"no GPU has the index {self._index}")
        return handle

    def _same_part(self) -> GpuPart:
        """The part in that slot, described again if it is another; looked at as seldom as the rest."""
        part = self._part
        assert part is not None, "identify has taken it up"
        part.calls.turn()
        if self._is_slow(part):
            uuid = identity.uuid(part.calls)
            if uuid and uuid != self._described.identity:
                self._identify(listen=True)
                part = self._part or part
            part.calls.turn()
        return part

    def _take_up(self, handle: Any, described: Device) -> GpuPart:
        if self._part is not None:
            self._refused_before = self.refused
            self._part.events.end()
        self._part = GpuPart(handle, described, self._around)
        self._unanswered = Unanswered()
        self._turn = 0
        return self._part


def _is_another(before: Device, after: Device) -> bool:
    """Another part, or the same one cut differently: what it supports is another matter then."""
    mig = before.attributes.get("mig") != after.attributes.get("mig")
    return before.identity != after.identity or mig
