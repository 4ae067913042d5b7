"""A twin of reported faults: walks what senders said, and says which fault stands on which device."""

from dataclasses import dataclass

from nodeagent.core.catalog.settings import SECOND_NS, PublicSettings
from nodeagent.core.faults.reported import BY, FAULT_ID, SENDER
from nodeagent.core.model import (
    Assertion,
    Event,
    EventKind,
    PublicFault,
    PublicFaults,
    Report,
    Started,
    View,
)
from tests.simulation.history import Broken, Step
from tests.simulation.watch import Invariant

ONCE_HOLD_NS = 60 * SECOND_NS
DAY_NS = 86_400 * SECOND_NS

Fault = tuple[str, str, str]
"""Device id, code, and whose."""


@dataclass(slots=True)
class Standing:
    """``shown``: it is there until somebody says otherwise; else it ends after the newest ``once``."""

    sender: str
    began_ms: int
    heard_ns: int
    shown: bool


class ReportsStand(Invariant):
    name = "a reported fault stands until its sender ends it or is silent for too long"

    def __init__(self) -> None:
        self._standing: dict[Fault, Standing] = {}
        self._over: dict[str, tuple[int, int]] = {}
        """Up to when it is over by its sender's clock, and when that came."""
        self._public = PublicSettings()

    def on_step(self, step: Step) -> None:
        given = step.given
        for event in step.events:
            if event.kind is EventKind.CLEARED and event.source == "public":
                self._ended(step, event)
        public = step.catalog.settings.public
        if isinstance(given, Started) or public != self._public:
            for one in self._standing.values():
                one.heard_ns = step.now_ns if one.shown else one.heard_ns
        self._public = public
        if isinstance(given, PublicFaults):
            for fault in given.faults:
                self._said(step, fault)
        self._compare(step)
        for whose, one in self._standing.items():
            after_ns = step.now_ns - one.heard_ns
            if after_ns > self._longest_ns(one):
                raise Broken(self.name, f"{whose} is open {after_ns / 1e9} s after it was last reported")

    def _longest_ns(self, one: Standing) -> int:
        expiry_ns = self._public.expiry_ns(one.sender)
        return expiry_ns + expiry_ns // 10 + 1 if one.shown else ONCE_HOLD_NS + 1

    def _ended(self, step: Step, event: Event) -> None:
        """By time, neither early nor late: the rest is compared after the step."""
        name, by = f"{event.evidence[SENDER]}/{event.evidence[FAULT_ID]}", event.evidence.get(BY, "")
        fault = event.device_id, event.code, _key(name, by)
        one = self._standing.get(fault)
        if one is None or event.why == "recovered":
            return
        if event.why.startswith("released by"):
            del self._standing[fault]
            return
        after_ns, expiry_ns = event.at_ns - one.heard_ns, self._public.expiry_ns(one.sender)
        if one.shown and not expiry_ns < after_ns <= self._longest_ns(one):
            raise Broken(self.name, f"{fault} expired after {after_ns / 1e9} s")
        if not one.shown and after_ns != ONCE_HOLD_NS + 1:
            raise Broken(self.name, f"{fault} closed {after_ns / 1e9} s after its last once")
        del self._standing[fault]

    def _said(self, step: Step, given: PublicFault) -> None:
        report, own = given.report, _key(given.report.name, given.report.by)
        there = {fault[2] for fault in self._standing if fault[2].split(" of ")[0] == report.name}
        own = report.name if own not in there and report.name in there else own
        if given.assertion is Assertion.RECOVER:
            mine = there if given.ends_all else there & {own, report.name, _key(report.name, report.by)}
            over = [
                fault
                for fault, one in self._standing.items()
                if fault[2] in mine and one.began_ms <= report.began_ms
            ]
            for key in {own, *(fault[2] for fault in over)}:
                if not self._is_over(step, key, report):
                    self._over[key] = report.began_ms, step.now_ns
            for fault in over:
                del self._standing[fault]
            return
        if self._is_over(step, own, report):
            return
        for name in given.devices:
            fault = _id_of(step.after, name), given.code, own
            self._occurs(fault, given, step.now_ns)

    def _is_over(self, step: Step, key: str, report: Report) -> bool:
        up_to_ms, since_ns = self._over.get(key, (-1, 0))
        kept_ns = self._public.expiry_ns(report.sender) or DAY_NS
        return report.began_ms <= up_to_ms and step.now_ns - since_ns <= kept_ns

    def _occurs(self, fault: Fault, given: PublicFault, now_ns: int) -> None:
        one, report, is_once = self._standing.get(fault), given.report, given.assertion is Assertion.ONCE
        if one is None:
            self._standing[fault] = Standing(report.sender, report.began_ms, now_ns, not is_once)
        elif one.shown:
            one.heard_ns = now_ns
            one.began_ms = max(one.began_ms, report.began_ms) if is_once else one.began_ms
        elif not is_once or report.began_ms > one.began_ms:
            one.heard_ns, one.began_ms, one.shown = now_ns, report.began_ms, not is_once

    def _compare(self, step: Step) -> None:
        for event in step.events:
            if was := event.evidence.get("was"):
                moved = {fault for fault in self._standing if fault[0] == was}
                self._standing |= {
                    (event.device_id, *fault[1:]): self._standing.pop(fault) for fault in moved
                }
        found, expected = _open(step.after), self._standing.keys()
        if found != expected:
            raise Broken(
                self.name, f"too many {sorted(found - expected)}, too few {sorted(expected - found)}"
            )


def _open(view: View) -> set[Fault]:
    return {
        (one.device_id, one.code, one.origin.report.key)
        for one in view.conditions
        if one.origin.report is not None
    }


def _key(name: str, by: str) -> str:
    return f"{name} of {by}" if by else name


def _id_of(view: View, name: str) -> str:
    return next(device.id for device in view.devices if device.name == name)
