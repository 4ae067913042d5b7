"""A twin of the faults' presence: what the inputs alone say of each (device, code), without rules of time."""

from dataclasses import dataclass

from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import ALL_DEVICES, ActiveSet, Assertion, Event, EventKind, Signal, Started
from tests.simulation.history import Step
from tests.simulation.twins.observed import device_id

Fault = tuple[str, str]
"""Device id and code as it is compared."""


@dataclass(slots=True)
class Heard:
    """``last_ns``: the newest signal of it, a recovery too. ``shown``: by an occurrence or an active set.
    ``once_ns``: the newest ``once``.
    """

    source: str
    last_ns: int
    boot: str
    shown: bool = False
    once_ns: int | None = None


class PresenceTwin:
    """``step`` is fed every step, in order. A fault is known from its raise to its clear."""

    def __init__(self) -> None:
        self.heard: dict[Fault, Heard] = {}
        self.over_ns: dict[Fault, int] = {}
        self.boot = ""

    def step(self, step: Step) -> None:
        given = step.given
        if isinstance(given, Started):
            self.boot = given.boot_id
        for event in step.events:
            if event.kind is EventKind.RAISED and not event.injected:
                self.heard[fault_of(event)] = Heard(event.source, event.at_ns, self.boot)
        if isinstance(given, Signal) and not given.injected and given.trusted:
            self._signalled(step, given)
        elif isinstance(given, ActiveSet) and given.device != ALL_DEVICES:
            self._polled(step, given)
        for event in step.events:
            if event.kind is EventKind.CLEARED and not event.injected:
                self.heard.pop(fault_of(event), None)
                self.over_ns[fault_of(event)] = step.now_ns
            if event.evidence.get("was"):
                self.heard = {key: one for key, one in self.heard.items() if key[0] != event.evidence["was"]}

    def _signalled(self, step: Step, given: Signal) -> None:
        heard = self.heard.get((device_id(step.after, given.device), canonical(given.code)))
        if heard is None:
            return
        heard.last_ns = step.now_ns
        if given.assertion is not Assertion.RECOVER:
            heard.boot = self.boot
        if given.assertion is Assertion.OCCUR:
            heard.source = heard.source if heard.shown else given.source
            heard.shown = True
        elif given.assertion is Assertion.RECOVER:
            heard.shown = False
        else:
            heard.once_ns = step.now_ns

    def _polled(self, step: Step, given: ActiveSet) -> None:
        device = device_id(step.after, given.device)
        for active in given.codes:
            heard = self.heard.get((device, canonical(active.code)))
            if heard is not None:
                heard.source = heard.source if heard.shown else given.source
                heard.shown, heard.boot = True, self.boot


def fault_of(event: Event) -> Fault:
    return event.device_id, canonical(event.code)
