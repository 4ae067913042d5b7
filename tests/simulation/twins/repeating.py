"""A twin of the frequency rule with correlation: queues and promotions, recomputed from what was said."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import (
    Assertion,
    Belief,
    CatalogChanged,
    CounterMark,
    Edge,
    EventKind,
    Holder,
    Kind,
    Operator,
    ProcessesListed,
    Signal,
    Started,
)
from tests.simulation.catalogs import is_tangled
from tests.simulation.history import Step
from tests.simulation.twins.lasting import DurationTwin
from tests.simulation.twins.levels import PRECEDENCE
from tests.simulation.twins.observed import Observed, device_id
from tests.simulation.twins.presence import Fault
from tests.simulation.twins.rows import counts_of, frequency_rule, is_counted, row_of

Repeated = tuple[str, str, str]
"""Device id, code as it is compared, id of the rule."""

BURST_NS = 180 * SECOND_NS
LEFT_LATE_NS = 30 * SECOND_NS


@dataclass(slots=True)
class Promoted:
    """``queue`` is what fired it, ``quiet_ns`` since when its fault is gone, None while it is there."""

    rule: FrequencyRule
    source: str
    fired_ns: int
    queue: list[int]
    effective: bool = False
    quiet_ns: int | None = None


@dataclass(slots=True)
class FrequencyTwin:
    """``step`` is fed every step. ``left_out``: codes of which a reload made it lose count."""

    promoted: dict[Repeated, Promoted] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    _queues: dict[Repeated, list[int]] = field(default_factory=dict)
    _bursts: dict[Repeated, int] = field(default_factory=dict)
    _seen: dict[Fault, list[int]] = field(default_factory=dict)
    _suppressed: dict[Fault, int] = field(default_factory=dict)
    _held: dict[str, dict[Holder, int | None]] = field(default_factory=dict)
    _reported_since_start: set[str] = field(default_factory=set)
    _lasting: DurationTwin = field(default_factory=DurationTwin)
    _observed: Observed = field(default_factory=Observed)
    _boot: str = ""

    def step(self, step: Step) -> None:
        self._lasting.step(step)
        self._observed.step(step)
        given = step.given
        if isinstance(given, ProcessesListed):
            self._hold(step, given)
        elif isinstance(given, Started):
            self._reported_since_start.clear()
            if self._boot != given.boot_id:
                self._held.clear()
            self._boot = given.boot_id
        elif isinstance(given, CatalogChanged):
            self._reload(step)
        elif isinstance(given, Operator) and given.what == "release":
            device = device_id(step.before, given.device)
            self.promoted = {key: one for key, one in self.promoted.items() if key[0] != device}
        for event in step.events:
            if was := event.evidence.get("was"):
                self._forget(was)
        for at_ns, fault, times, source in self._occurrences(step):
            self._take_effect(step, at_ns)
            self._occurs(step, fault, at_ns, times, source)
        self._note_quiet(step)
        self._take_effect(step, step.now_ns)
        self._release(step)

    # ------------------------------------------------------------------ what occurred

    def _occurrences(self, step: Step) -> Iterator[tuple[int, Fault, int, str]]:
        given = step.given
        for fault, at_ns in self._lasting.timed_out:
            yield at_ns, fault, 1, self._source(step, fault)
        if isinstance(given, Edge | CounterMark):
            return
        if isinstance(given, Signal):
            fault = device_id(step.after, given.device), canonical(given.code)
            if counts_of(step.catalog, given) and fault[0]:
                yield step.now_ns, fault, given.count, given.source
            return
        for event in step.events:
            fault = event.device_id, canonical(event.code)
            if event.kind is EventKind.RAISED and not event.injected and is_counted(step.catalog, event.code):
                yield event.at_ns, fault, 1, event.source

    def _source(self, step: Step, fault: Fault) -> str:
        for one in (*step.after.conditions, *step.before.conditions):
            if (one.device_id, canonical(one.code)) == fault and not one.origin.injected:
                return one.source
        return ""

    def _occurs(self, step: Step, fault: Fault, at_ns: int, times: int, source: str) -> None:
        device, code = fault
        kinds = [one.kind for one in step.after.devices if one.id == device]
        row = row_of(step.catalog, code)
        rule = frequency_rule(step.catalog, code, Kind.CHIP)
        if kinds != [Kind.CHIP] or row is None or row.user_induced or rule is None:
            return
        if is_tangled(step.catalog.digest, code) or not reaches_level(step, fault, rule):
            return
        if is_line_alone(step, fault):
            return
        source = self._source(step, fault) or source
        if rule.correlation_ns:
            self._seen.setdefault(fault, []).append(at_ns)
        promotion = self.promoted.get((*fault, rule.id))
        if promotion is None and code not in self.left_out:
            self._count(fault, rule, at_ns, times, source)
        if rule.correlation_ns:
            self._correlate(fault, rule, at_ns)

    def _count(self, fault: Fault, rule: FrequencyRule, at_ns: int, times: int, source: str) -> None:
        key = (*fault, rule.id)
        burst_ns = rule.burst_ns if rule.burst_ns is not None else BURST_NS * (source in ("kmsg", "nvidia"))
        if burst_ns:
            last_ns, self._bursts[key] = self._bursts.get(key), at_ns
            if last_ns is not None and at_ns - last_ns <= burst_ns:
                return
            times = 1
        queue = self._queues.setdefault(key, [])
        queue += [at_ns] * max(1, times)
        queue[:] = [one for one in queue if at_ns - one <= rule.time_window_ns]
        if len(queue) >= rule.times:
            fired, self._queues[key] = queue, []
            promoted = Promoted(rule, source, at_ns, fired)
            promoted.effective = not rule.correlation_ns
            self.promoted[key] = promoted

    # ------------------------------------------------------------------ one cause on several chips

    def _correlate(self, fault: Fault, rule: FrequencyRule, at_ns: int) -> None:
        suppressed = [
            (key, one)
            for key, one in self.promoted.items()
            if key[1] == fault[1] and one.rule.id == rule.id and not one.effective
            if any(
                abs(seen_ns - one.fired_ns) <= rule.correlation_ns
                for other, times in self._seen.items()
                if other[1] == fault[1] and other[0] != key[0] and self._same_job(key[0], other[0], at_ns)
                for seen_ns in times
            )
        ]
        for key, one in suppressed:
            del self.promoted[key]
            self._queues[key] = sorted(one.queue + self._queues.get(key, []))
            self._suppressed[key[:2]] = one.fired_ns
        late = any(
            abs(at_ns - fired_ns) <= rule.correlation_ns
            and (key[0] == fault[0] or self._same_job(key[0], fault[0], at_ns))
            for key, fired_ns in self._suppressed.items()
            if key[1] == fault[1]
        )
        if suppressed or late:
            self._leave(fault[1], rule, at_ns)

    def _leave(self, code: str, rule: FrequencyRule, now_ns: int) -> None:
        """The correlated leave every queue, the others stay."""
        leaving: dict[Repeated, list[int]] = {}
        for key, queue in self._queues.items():
            if key[1:] != (code, rule.id):
                continue
            others = [
                at_ns
                for other, times in self._seen.items()
                if other[1] == code and other[0] != key[0] and self._same_job(key[0], other[0], now_ns)
                for at_ns in times
            ]
            leaving[key] = [
                one for one in queue if not any(abs(one - at_ns) <= rule.correlation_ns for at_ns in others)
            ]
        self._queues.update(leaving)

    def _hold(self, step: Step, given: ProcessesListed) -> None:
        """Of each process ever listed here: when it left, None while it is there."""
        device = device_id(step.before, given.device)
        if not device:
            return
        if not given.known:
            self._reported_since_start.discard(device)
            return
        self._reported_since_start.add(device)
        listed = self._held.setdefault(device, {})
        for holder, left_ns in list(listed.items()):
            if left_ns is None and holder not in given.holders:
                listed[holder] = step.now_ns
        listed.update(dict.fromkeys(given.holders))

    def _same_job(self, one: str, other: str, now_ns: int) -> bool:
        if not {one, other} <= self._reported_since_start:
            return True
        jobs = [
            {
                holder.job
                for holder, left_ns in self._held[device].items()
                if left_ns is None or now_ns - left_ns <= LEFT_LATE_NS
            }
            for device in (one, other)
        ]
        return "" in jobs[0] | jobs[1] or bool(jobs[0] & jobs[1])

    # ------------------------------------------------------------------ effect and end

    def _take_effect(self, step: Step, until_ns: int) -> None:
        for key, one in self.promoted.items():
            if not one.effective and one.fired_ns + one.rule.correlation_ns < until_ns:
                one.effective = not self._observed.awaits(one.source, key[0], step.now_ns)

    def _note_quiet(self, step: Step) -> None:
        present = {
            (one.device_id, canonical(one.code)): one.presence.is_shown
            for one in step.after.conditions
            if not one.origin.injected
        }
        ends_ns = {
            (one.device_id, canonical(one.code)): one.at_ns
            for one in step.events
            if one.kind is EventKind.CLEARED
        }
        for (device, code, _), one in self.promoted.items():
            fault = device, code
            if fault in self._lasting.lasted:
                one.quiet_ns = None
            lasting = self._lasting.open.get(fault)
            if present.get(fault, False):
                one.quiet_ns = None if lasting is None or lasting.judged else one.quiet_ns
            elif one.quiet_ns is None:
                one.quiet_ns = ends_ns.get(fault, step.now_ns)
            elif _once(step) == fault:
                one.quiet_ns = step.now_ns

    def _release(self, step: Step) -> None:
        for key, one in list(self.promoted.items()):
            if one.quiet_ns is None or one.rule.release_ns is None or not one.effective:
                continue
            is_over = one.quiet_ns + one.rule.release_ns < step.now_ns
            if is_over and not self._observed.awaits(one.source, key[0], step.now_ns):
                del self.promoted[key]

    def _reload(self, step: Step) -> None:
        """A promotion in force keeps to its rule as it is now; of what was counted no more is said."""
        rules = {rule.id: rule for rule in step.catalog.frequency}
        self.left_out |= {code for _, code in self._lasting.left_out}
        self.left_out |= {key[1] for key, one in self.promoted.items() if not one.effective}
        for key, one in list(self.promoted.items()):
            rule = rules.get(one.rule.id)
            named = rule is not None and ("*" in rule.codes or key[1] in map(canonical, rule.codes))
            if rule is None or not named or not one.effective:
                del self.promoted[key]
            else:
                one.rule = rule

    def _forget(self, device: str) -> None:
        self.promoted = {key: one for key, one in self.promoted.items() if key[0] != device}
        self._queues = {key: one for key, one in self._queues.items() if key[0] != device}
        self._bursts = {key: one for key, one in self._bursts.items() if key[0] != device}
        self._seen = {key: one for key, one in self._seen.items() if key[0] != device}
        self._suppressed = {key: one for key, one in self._suppressed.items() if key[0] != device}
        self._held.pop(device, None)
        self._reported_since_start.discard(device)


def _once(step: Step) -> Fault | None:
    """The fault of a ``once`` that counts, and so is its own recovery."""
    given = step.given
    if not isinstance(given, Signal) or given.assertion is not Assertion.ONCE or given.injected:
        return None
    fault = device_id(step.after, given.device), canonical(given.code)
    return fault if is_counted(step.catalog, given.code) else None


def is_line_alone(step: Step, fault: Fault) -> bool:
    """Whether only the kernel log reports it: that counts for nothing."""
    return any(
        one.backing.belief is not Belief.OWN
        for one in step.after.conditions
        if (one.device_id, canonical(one.code)) == fault and not one.origin.injected
    )


def reaches_level(step: Step, fault: Fault, rule: FrequencyRule) -> bool:
    """Whether the fault is severe enough for a rule on every code: as it is, or as its row says."""
    if rule.at_least is None:
        return True
    row = row_of(step.catalog, fault[1])
    levels = [
        one.level
        for one in step.after.conditions
        if (one.device_id, canonical(one.code)) == fault and not one.origin.injected
    ]
    level = (levels + ([row.level] if row is not None else []))[0]
    return PRECEDENCE.index(level) >= PRECEDENCE.index(rule.at_least)
