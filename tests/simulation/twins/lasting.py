"""A twin of the duration rule: walks what was said of each fault, and says when it times out and clears."""

from collections.abc import Iterator
from dataclasses import dataclass

from nodeagent.core.catalog.catalog import DurationRule
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import ALL_DEVICES, ActiveSet, Assertion, CatalogChanged, EventKind, Signal, Started
from tests.simulation.history import Step
from tests.simulation.twins.observed import Observed, device_id
from tests.simulation.twins.presence import Fault
from tests.simulation.twins.rows import duration_rule, is_known, is_related

ONCE_HOLD_NS = 60 * SECOND_NS


@dataclass(slots=True)
class Lasting:
    """One fault that is open. ``since_ns`` None: a ``once`` holds it; ``gone_ns``: since when it is gone.

    ``heard_ns`` is the last that was said of its presence, ``once_ns`` its newest ``once``.
    """

    source: str
    rule: DurationRule
    heard_ns: int
    boot: str
    since_ns: int | None = None
    gone_ns: int | None = None
    judged: bool = False
    in_force: bool = False
    once_ns: int | None = None

    def is_held(self, at_ns: int) -> bool:
        return self.once_ns is not None and at_ns <= self.once_ns + ONCE_HOLD_NS


class DurationTwin:
    """``step`` is fed every step; it leaves ``timed_out``: (fault, time) of what did so in it, in order, and
    ``lasted``, of which presence lasted for as long, be it in force already.
    """

    def __init__(self) -> None:
        self.open: dict[Fault, Lasting] = {}
        self.left_out: set[Fault] = set()
        self.timed_out: list[tuple[Fault, int]] = []
        self.lasted: list[Fault] = []
        self._over_ns: dict[Fault, int] = {}
        self._observed = Observed()
        self._boot = ""

    def step(self, step: Step) -> None:
        self.timed_out, self.lasted = [], []
        self._observed.step(step)
        given = step.given
        if isinstance(given, Started):
            self._boot = given.boot_id
        elif isinstance(given, CatalogChanged):
            self.left_out |= {(one.device_id, canonical(one.code)) for one in step.before.conditions}
            self.open.clear()
        elif isinstance(given, Signal) and given.trusted and not given.injected:
            self._signalled(step, given)
        elif isinstance(given, ActiveSet) and given.device != ALL_DEVICES:
            self._polled(step, given)
        for event in step.events:
            if event.evidence.get("was"):
                moved = {key for key in self.open if key[0] == event.evidence["was"]}
                for key in moved:
                    del self.open[key]
                if event.kind is not EventKind.DEVICE_REPLACED:
                    self.left_out |= {(event.device_id, key[1]) for key in moved}
        self._pass_time(step)

    def _rule(self, step: Step, fault: Fault) -> DurationRule | None:
        if (
            fault in self.left_out
            or not is_known(step.catalog, fault[1])
            or is_related(step.catalog, fault[1])
        ):
            return None
        return duration_rule(step.catalog, fault[1])

    def _signalled(self, step: Step, given: Signal) -> None:
        fault = device_id(step.after, given.device), canonical(given.code)
        rule = self._rule(step, fault)
        if rule is None or not fault[0]:
            return
        if given.assertion is Assertion.RECOVER:
            self._recovers(fault, step.now_ns)
        else:
            shown = given.assertion is Assertion.OCCUR
            self._occurs(fault, rule, given.source, step.now_ns, shown=shown)

    def _polled(self, step: Step, given: ActiveSet) -> None:
        device = device_id(step.after, given.device)
        shown = {(device, canonical(active.code)) for active in given.codes}
        for fault in shown:
            rule, lasting = self._rule(step, fault), self.open.get(fault)
            if rule is None or not device:
                continue
            raised = any(
                event.kind is EventKind.RAISED and canonical(event.code) == fault[1] for event in step.events
            )
            if lasting is None and raised:
                self._occurs(fault, rule, given.source, step.now_ns, shown=True)
            elif lasting is not None and self._is_news(lasting, fault, given):
                heard_ns, anew = lasting.heard_ns, lasting.gone_ns is not None
                self._occurs(fault, rule, given.source, step.now_ns, shown=True)
                lasting.heard_ns = step.now_ns if anew else heard_ns
        if given.complete:
            self._leaves_out(step, given, device, shown)

    def _is_news(self, lasting: Lasting, fault: Fault, given: ActiveSet) -> bool:
        """Whether the poll may show it: not where the driver said that it is over since the poll began."""
        if lasting.gone_ns is not None:
            return lasting.heard_ns < given.begun_ns
        is_older = fault in self._over_ns and self._over_ns[fault] >= given.begun_ns
        return lasting.since_ns is not None or not is_older

    def _leaves_out(self, step: Step, given: ActiveSet, device: str, shown: set[Fault]) -> None:
        for fault in [key for key in self.open if key[0] == device and key not in shown]:
            lasting = self.open[fault]
            if lasting.source != given.source:
                continue
            if lasting.since_ns is not None and lasting.heard_ns < given.begun_ns:
                self._recovers(fault, step.now_ns)
            if lasting.boot != self._boot:
                self.open.pop(fault, None)

    def _occurs(self, fault: Fault, rule: DurationRule, source: str, now_ns: int, *, shown: bool) -> None:
        lasting = self.open.setdefault(fault, Lasting(source, rule, now_ns, self._boot))
        lasting.boot = self._boot
        if shown:
            lasting.heard_ns = now_ns
        else:
            lasting.once_ns = now_ns
        if shown and (lasting.since_ns is None or lasting.gone_ns is not None):
            lasting.source = source
            lasting.since_ns, lasting.gone_ns, lasting.judged = now_ns, None, False

    def _recovers(self, fault: Fault, now_ns: int) -> None:
        lasting = self.open.get(fault)
        if lasting is None or lasting.gone_ns is not None:
            return
        self._over_ns[fault] = now_ns
        if lasting.in_force:
            lasting.gone_ns = lasting.heard_ns = now_ns
        elif lasting.since_ns is not None and lasting.is_held(now_ns):
            lasting.since_ns, lasting.heard_ns, lasting.judged = None, now_ns, False
        else:
            del self.open[fault]

    def _pass_time(self, step: Step) -> None:
        for fault, at_ns in sorted(self._due(step), key=lambda due: due[1]):
            lasting = self.open[fault]
            if lasting.gone_ns is None and lasting.since_ns is not None:
                if not lasting.in_force:
                    self.timed_out.append((fault, at_ns))
                lasting.judged = lasting.in_force = True
                self.lasted.append(fault)
            elif lasting.gone_ns is not None and lasting.is_held(step.now_ns):
                lasting.since_ns = lasting.gone_ns = None
                lasting.judged = lasting.in_force = False
            else:
                del self.open[fault]

    def _due(self, step: Step) -> Iterator[tuple[Fault, int]]:
        for fault, lasting in self.open.items():
            if lasting.gone_ns is not None:
                at_ns = lasting.gone_ns + lasting.rule.recover_timeout_ns + 1
            elif lasting.since_ns is None:
                at_ns = (lasting.once_ns or lasting.heard_ns) + ONCE_HOLD_NS + 1
            elif not lasting.judged:
                at_ns = lasting.since_ns + lasting.rule.fault_timeout_ns + 1
            else:
                continue
            if at_ns <= step.now_ns and not self._observed.awaits(lasting.source, fault[0], step.now_ns):
                yield fault, at_ns
