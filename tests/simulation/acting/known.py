"""A twin of what the agent can know of who uses a chip, what was polled, and what people ordered.

From the inputs alone. What an earlier life of the daemon knew of processes and faults is not known.
"""

from dataclasses import dataclass
from typing import TypeVar

from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import (
    ActiveSet,
    Assertion,
    Claims,
    EventKind,
    Holder,
    Operator,
    ProcessesListed,
    Signal,
    Started,
)
from tests.simulation.history import Step
from tests.simulation.twins.observed import Observed, device_id
from tests.simulation.watch import Invariant

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Polled:
    """The newest complete poll of a device, by when it was begun."""

    begun_ns: int
    codes: frozenset[str]


class Known(Invariant):
    """It hears of every step before those who ask it; the answers are as of its end. It breaks nothing."""

    def __init__(self) -> None:
        self.started_ns = 0
        self.holders: dict[str, tuple[Holder, ...]] = {}
        self.claims: dict[str, set[str]] = {}
        self.is_degraded = False
        self.polled: dict[str, Polled] = {}
        self.shown_ns: dict[tuple[str, str], int] = {}
        """When the newest poll that showed a code was begun; it need not have read all."""
        self.heard_ns: dict[tuple[str, str], int] = {}
        self.approved: set[str] = set()
        self.ordered_once: set[str] = set()
        self._boot_id = ""
        self._quiesced_until_ns: dict[tuple[str, str], int | None] = {}
        self._observed = Observed()

    def on_step(self, step: Step) -> None:
        self._observed.step(step)
        match step.given:
            case Started() as given:
                self._starts(step.now_ns, given.boot_id)
            case Signal() as given if not given.injected:
                self._signalled(step, given)
            case ActiveSet() as given:
                self._polled(step, given)
            case ProcessesListed() as given:
                if device := device_id(step.after, given.device):
                    self.holders[device] = given.holders
            case Claims() as given:
                if device := device_id(step.after, given.device):
                    jobs = self.claims.setdefault(device, set())
                    (jobs.add if given.claimed else jobs.discard)(given.job)
            case Operator() as given:
                self._ordered(given)
                if given.what == "reset" and given.once:
                    proposed = (event for event in step.events if event.kind is EventKind.ACTION_PROPOSED)
                    self.ordered_once |= {event.condition_id for event in proposed}
        for event in step.events:
            if was := event.evidence.get("was"):
                self._moves(was, "" if event.kind is EventKind.DEVICE_REPLACED else event.device_id)

    def users(self, step: Step, device: str) -> str:
        """Who uses it as far as is known, "" if nobody; unknown counts as somebody."""
        (view,) = [one for one in step.after.devices if one.id == device]
        if device not in self.holders or not self._observed.observes(view.vendor, device):
            return f"the users of {view.name} are not known"
        if self.holders[device] or self.claims.get(device):
            return f"{view.name} is used by {self.holders[device]} {self.claims.get(device)}"
        return "" if self.claims else "nobody ever claimed anything"

    def is_quiesced(self, now_ns: int) -> bool:
        return any(until_ns is None or until_ns > now_ns for until_ns in self._quiesced_until_ns.values())

    def is_live(self, device: str, code: str) -> bool:
        """Heard of, or shown, in this life, and not said to be over since."""
        return self.heard_ns.get((device, canonical(code)), -1) >= self.started_ns

    def _starts(self, now_ns: int, boot_id: str) -> None:
        """No job outlives its boot."""
        if boot_id != self._boot_id:
            self.claims = {device: set() for device in self.claims}
        self.started_ns, self._boot_id = now_ns, boot_id
        self.holders.clear()
        self.polled.clear()

    def _signalled(self, step: Step, given: Signal) -> None:
        if given.code == "store_degraded":
            self.is_degraded = given.assertion is Assertion.OCCUR
        fault = device_id(step.after, given.device), canonical(given.code)
        if given.assertion is Assertion.RECOVER:
            self.heard_ns.pop(fault, None)
        else:
            self.heard_ns[fault] = step.now_ns

    def _polled(self, step: Step, given: ActiveSet) -> None:
        device = device_id(step.after, given.device)
        codes = frozenset(canonical(one.code) for one in given.codes)
        for code in codes:
            self.heard_ns[device, code] = step.now_ns
            self.shown_ns[device, code] = max(given.begun_ns, self.shown_ns.get((device, code), 0))
        before = self.polled.get(device)
        if given.complete and (before is None or before.begun_ns <= given.begun_ns):
            self.polled[device] = Polled(given.begun_ns, codes)

    def _ordered(self, given: Operator) -> None:
        if given.what == "quiesce":
            before_ns = self._quiesced_until_ns.get((given.owner, given.reason), given.until_ns)
            ends_never = before_ns is None or given.until_ns is None
            latest_ns = None if ends_never else max(before_ns or 0, given.until_ns or 0)
            self._quiesced_until_ns[given.owner, given.reason] = latest_ns
        elif given.what == "resume":
            others = {} if given.force else self._quiesced_until_ns
            self._quiesced_until_ns = {one: ns for one, ns in others.items() if one[0] != given.owner}
        elif given.what == "approve":
            self.approved.add(given.device)

    def _moves(self, was: str, to: str) -> None:
        _move(self.holders, was, to)
        _move(self.claims, was, to)
        _move(self.polled, was, to)
        for fault in [fault for fault in self.heard_ns if fault[0] == was]:
            at_ns = self.heard_ns.pop(fault)
            if to:
                self.heard_ns[to, fault[1]] = at_ns


def _move(known: dict[str, T], was: str, to: str) -> None:
    moved = known.pop(was, None)
    if moved is not None and to:
        known.setdefault(to, moved)
