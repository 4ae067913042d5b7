"""What was seen: every change of a fault's, device's or source's state and its cause, counted."""

from collections import Counter
from collections.abc import Iterator, Sequence

from nodeagent.core.machines.resets import OUTCOME
from nodeagent.core.model import (
    Condition,
    Event,
    EventKind,
    Signal,
    Source,
    Tick,
    View,
)
from tests.simulation.history import Step
from tests.simulation.watch import Invariant

Transition = tuple[str, str, str, str]
"""What, from, to, cause."""

NONE = "-"


class Transitions(Invariant):
    """Counts ``Transition``s, events by kind, and how attempts of resets ended, over what is committed."""

    def __init__(self) -> None:
        self.seen: Counter[Transition] = Counter()
        self.kinds: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()

    def on_step(self, step: Step) -> None:
        for event in step.events:
            self.kinds[event.kind] += 1
            if event.kind is EventKind.ACTION_FINISHED:
                self.ends[_end_of(event)] += 1
        for _, transition in changes(step):
            self.seen[transition] += 1

    def add(self, other: "Transitions") -> None:
        self.seen += other.seen
        self.kinds += other.kinds
        self.ends += other.ends


def changes(step: Step) -> Iterator[tuple[str, Transition]]:
    """Of each cell that is another after the step: which one, and its transition."""
    if step.before is step.after:
        return
    cause = cause_of(step)
    before, after = dict(_states(step.before)), dict(_states(step.after))
    for key in [*before, *(key for key in after if key not in before)]:
        was, now = before.get(key, NONE), after.get(key, NONE)
        if was != now:
            yield key[1], (key[0], was, now, cause)


def cause_of(step: Step) -> str:
    """The input in a word or two."""
    given = step.given
    if isinstance(given, Tick):
        return "time"
    if isinstance(given, Signal):
        return f"{'injected ' if given.injected else ''}{given.assertion}"
    word = type(given).__name__
    if word == "ActiveSet":
        return "complete poll" if given.complete else "incomplete poll"  # type: ignore[union-attr]
    if word == "Operator":
        return given.what  # type: ignore[union-attr]
    return word


def _end_of(event: Event) -> str:
    """The word that ends an attempt of a reset, or that none was made."""
    if event.evidence["mode"] == "dry-run":
        return "on paper"
    word = event.evidence[OUTCOME]
    return word if "started_after_s" in event.evidence else f"{word} before a start"


def never_seen(
    transitions: Transitions,
    kinds: frozenset[EventKind],
    expected: Sequence[Transition],
) -> list[str]:
    """Of what must be reachable in a life: these kinds of events, and these changes."""
    seen = transitions.seen
    missing = [f"event {kind}" for kind in sorted(kinds - set(transitions.kinds))]
    for what, was, now, cause in expected:
        if not any(
            one[0] == what and one[1].startswith(was) and one[2].startswith(now) and one[3] == cause
            for one in seen
        ):
            missing.append(f"{what}: {was} -> {now} by {cause}")
    return missing


OF_ACTING = frozenset(
    {
        EventKind.ACTION_PROPOSED,
        EventKind.ACTION_STARTED,
        EventKind.ACTION_FINISHED,
        EventKind.QUIESCED,
        EventKind.RESUMED,
    }
)
OF_JOBS = frozenset(kind for kind in EventKind if kind.value.startswith("job_"))
OF_RULES = frozenset(EventKind) - OF_ACTING - OF_JOBS

CHANGES_BY_RULES: tuple[Transition, ...] = (
    ("condition", NONE, "present", "occur"),
    ("condition", NONE, "once", "once"),
    ("condition", NONE, "present", "complete poll"),
    ("condition", NONE, "present", "incomplete poll"),
    ("condition", "once", "present", "occur"),
    ("condition", "once", "present", "complete poll"),
    ("condition", "once", NONE, "time"),
    ("condition", "present", NONE, "recover"),
    ("condition", "present", NONE, "complete poll"),
    ("condition", "present", "timed out", "time"),
    ("condition", "present", "present phase 1", "time"),
    ("condition", "timed out", "recovering", "recover"),
    ("condition", "timed out", "recovering", "complete poll"),
    ("condition", "recovering", NONE, "time"),
    ("condition", "recovering", "timed out", "occur"),
    ("condition", "present", NONE, "DeviceSeen"),
    ("condition", "once", NONE, "complete poll"),
    ("condition", "once", NONE, "ProcessesListed"),
    ("condition", "once", NONE, "release"),
    ("condition", NONE, "injected", "injected occur"),
    ("condition", "injected", NONE, "time"),
    ("promotion", NONE, "pending", "occur"),
    ("promotion", NONE, "pending", "once"),
    ("promotion", NONE, "effective", "occur"),
    ("promotion", NONE, "effective", "time"),
    ("promotion", "pending", "effective", "time"),
    ("promotion", "pending", NONE, "occur"),
    ("promotion", "effective", NONE, "time"),
    ("promotion", "effective", NONE, "release"),
    ("promotion", "effective", NONE, "CatalogChanged"),
    ("promotion", "effective", NONE, "DeviceSeen"),
    ("hold", NONE, "bounded", "isolate"),
    ("hold", NONE, "unbounded", "isolate"),
    ("hold", "bounded", NONE, "time"),
    ("hold", "unbounded", NONE, "release"),
    ("source", "observing", "lost", "SourceLost"),
    ("source", "lost", "observing", "SourceBack"),
    ("source", "observing", "awaited", "Started"),
    ("source", "awaited", "unread", "time"),
    ("source", "awaited", "observing", "SourceBack"),
    ("device", "ALLOW", "UNKNOWN", "SourceLost"),
    ("device", "UNKNOWN", "ALLOW", "SourceBack"),
    ("device", "ALLOW", "ISOLATE", "occur"),
    ("device", "ISOLATE", "ALLOW", "recover"),
    ("device", "ALLOW", "NO_NEW_JOBS", "occur"),
    ("device", "NO_NEW_JOBS", "ISOLATE", "time"),
)
CHANGES_BY_ACTING: tuple[Transition, ...] = (
    ("reset", NONE, "announced", "occur"),
    ("reset", NONE, "announced", "once"),
    ("reset", NONE, "announced", "complete poll"),
    ("reset", NONE, "announced", "time"),
    ("reset", NONE, "announced", "reset"),
    ("reset", NONE, "announced", "release"),
    ("reset", "announced", "running", "time"),
    ("reset", "announced", "waiting", "time"),
    ("reset", "announced", "asking", "time"),
    ("reset", "announced", NONE, "recover"),
    ("reset", "announced", "ended", "refuse"),
    ("reset", "announced", NONE, "CatalogChanged"),
    ("reset", "asking", "running", "approve"),
    ("reset", "asking", "ended", "refuse"),
    ("reset", "asking", "ended", "time"),
    ("reset", "waiting", "running", "ProcessesListed"),
    ("reset", "waiting", "running", "complete poll"),
    ("reset", "waiting", "running", "resume"),
    ("reset", "waiting", "running again", "time"),
    ("reset", "waiting", "ended", "time"),
    ("reset", "announced", NONE, "isolate"),
    ("reset", "running", "verifying", "ActionResult"),
    ("reset", "running", "waiting again", "ActionResult"),
    ("reset", "running", "waiting again", "time"),
    ("reset", "running", "ended", "ActionResult"),
    ("reset", "verifying", "ended", "complete poll"),
    ("reset", "verifying", "waiting again", "time"),
    ("reset", "verifying again", "ended", "complete poll"),
    ("reset", "verifying again", "ended", "time"),
    ("hold", NONE, "unbounded", "quiesce"),
    ("hold", "unbounded", NONE, "resume"),
    ("hold", "bounded", NONE, "time"),
)

CHANGES_OF_JOBS: tuple[Transition, ...] = (
    ("job", NONE, "running", "JobBegun"),
    ("job", NONE, "holding", "JobBegun"),
    ("job", NONE, "leaving", "JobBegun"),
    ("job", "running", "asked", "occur"),
    ("job", "running", "asked", "once"),
    ("job", "running", "asked", "ProcessesListed"),
    ("job", "running", "asked", "complete poll"),
    ("job", "running", "asked", "approve"),
    ("job", "running", "asked", "stop_job"),
    ("job", "running", "asked", "rerun_job"),
    ("job", "running", "leaving", "occur"),
    ("job", "running", "leaving", "isolate"),
    ("job", "running", "holding", "RunReported"),
    ("job", "running", "ended", "JobEnded"),
    ("job", "running", "ended", "Started"),
    ("job", "asked", "holding", "RunReported"),
    ("job", "asked", "holding", "ProcessesListed"),
    ("job", "asked", "running", "RunReported"),
    ("job", "asked", "leaving", "time"),
    ("job", "asked", "leaving", "refuse"),
    ("job", "asked", "ended", "JobEnded"),
    ("job", "holding", "running", "complete poll"),
    ("job", "holding", "running", "recover"),
    ("job", "holding", "running", "rerun_job"),
    ("job", "holding", "leaving", "time"),
    ("job", "holding", "leaving", "ActionResult"),
    ("job", "holding", "ended", "JobEnded"),
    ("job", "leaving", "ended", "JobEnded"),
    ("reset", "announced", "running", "RunReported"),
    ("reset", "announced", "running", "ProcessesListed"),
    ("reset", "waiting", "running", "JobEnded"),
)


def _states(view: View) -> Iterator[tuple[tuple[str, str], str]]:
    for condition in view.conditions:
        yield ("condition", condition.id), _of_condition(condition)
    for promotion in view.promotions:
        yield ("promotion", promotion.id), "effective" if promotion.effective else "pending"
    for hold in view.holds:
        yield ("hold", hold.id), "unbounded" if hold.until_ns is None else "bounded"
    for reset in view.resets:
        again = " again" if reset.attempt > 1 else ""
        yield ("reset", reset.id), f"{reset.stage}{again}"
    for job in view.jobs:
        if job.stage is not None:
            yield ("job", job.name), job.stage.value
    for source in view.sources:
        yield ("source", f"{source.name} {source.device_id}".strip()), _of_source(source)
    for device in view.devices:
        yield ("device", device.id), f"{device.verdict} {device.handling}"


def _of_condition(condition: Condition) -> str:
    if condition.origin.injected:
        return "injected"
    if condition.presence.recovered_ns is not None:
        return "recovering"
    if condition.presence.present_ns is None:
        return "once" + (" timed out" if condition.grade.timed_out else "")
    state = "timed out" if condition.grade.timed_out else "present"
    return f"{state} phase {condition.grade.phase}" if condition.grade.phase else state


def _of_source(source: Source) -> str:
    if source.lost_ns is not None:
        return "lost"
    if source.unread:
        return "awaited" if source.awaited else "unread"
    return "observing"
