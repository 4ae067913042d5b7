"""The explanation of a code by the tables in force, and the reasons of a verdict. It reads and judges
nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from nodeagent.api import messages
from nodeagent.core.catalog.catalog import FrequencyRule, Row
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.catalog.levels import (
    JOB_LEVELS,
    PRECEDENCE,
    WHEN_IDLE,
    Phases,
    Stance,
    of_job_stance,
    phases,
)
from nodeagent.core.catalog.lookup import Facts, Lookup
from nodeagent.core.catalog.settings import Mode, Settings
from nodeagent.core.model import DeviceView, Level, Reason, Recovery
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.store.records import StoredEvent
from nodeagent.tables import similar, texts
from nodeagent.tables.rule_kinds import Rule, sort_of

MOST_NEAREST: Final = 4
"""Each takes some milliseconds of the daemon's loop."""


def explanations(lookup: Lookup, codes: Iterable[str]) -> list[pb.CodeExplanation]:
    """Of each code, in their order; an unknown one names the codes that may be meant."""
    answers, unknown = [explanation(lookup, similar.without_zeros(code)) for code in codes], 0
    known = [row.code for row in lookup.catalog.rows.values()]
    for answer in answers:
        if answer.known:
            continue
        answer.same_number.extend(similar.with_the_number(answer.code, known))
        if not answer.same_number and unknown < MOST_NEAREST:
            unknown += 1
            answer.nearest.extend(similar.nearest(answer.code, known))
    return answers


def explanation(lookup: Lookup, code: str) -> pb.CodeExplanation:
    """The row of the code or of its family; ``known`` is false where there is neither."""
    facts, found = lookup.facts(code), rules(lookup, code)
    answer = pb.CodeExplanation(
        code=facts.code,
        rules=[rule.id for rule in found],
        rule_details=[_rule(rule) for rule in found],
    )
    row = facts.row
    if row is None:
        answer.name = facts.decoded or ""
        return answer
    answer.MergeFrom(
        pb.CodeExplanation(
            known=True,
            kind=enums.KINDS[row.kind],
            vendor=row.vendor,
            name=row.name,
            level=enums.LEVELS[row.level],
            user_induced=row.user_induced,
            clear_on=texts.clear_on(row.clear_on),
            description=row.description,
            action=row.action,
            file=row.file,
            family=row.code if facts.is_family else "",
            affects=row.affects,
            recovery=row.recovery,
            modes=_modes(row, lookup.settings),
            level_source=row.level_source,
            level_reason=row.level_reason,
        )
    )
    return answer


def _rule(rule: Rule) -> pb.RuleExplanation:
    sort = sort_of(rule)
    return pb.RuleExplanation(id=rule.id, kind=sort.key, text=sort.text(rule), file=rule.file)


def _modes(row: Row, settings: Settings) -> list[pb.ModePhases]:
    """What the level means in each mode; what restarts its job alone means the same in both, at first."""
    found = []
    for mode in Mode:
        steps = phases(row.level, replace(settings, mode=mode))
        if row.user_induced or (row.recovery is Recovery.NONE and row.level in JOB_LEVELS):
            steps = ((None, of_job_stance(row.kind, rescheduling=False)),)
        elif row.recovery is Recovery.VENDOR and row.level is Level.FREE_RESTART_NPU:
            steps = ((None, WHEN_IDLE),)
        found.append(
            pb.ModePhases(
                mode=mode,
                in_force=mode is settings.mode,
                phases=[_phase(ends_ns, stance) for ends_ns, stance in _lasting(steps)],
            )
        )
    return found


def _lasting(steps: Phases) -> Iterator[tuple[int | None, Stance]]:
    """Each stance with how long it lasts instead of when it ends."""
    begun_ns = 0
    for ends_ns, stance in steps:
        yield (None if ends_ns is None else ends_ns - begun_ns), stance
        begun_ns = ends_ns or begun_ns


def _phase(lasts_ns: int | None, stance: Stance) -> pb.Phase:
    phase = pb.Phase(verdict=enums.VERDICTS[stance[0]], handling=enums.HANDLINGS[stance[1]])
    if lasts_ns is not None:
        phase.duration.FromNanoseconds(lasts_ns)
    return phase


def rules(lookup: Lookup, code: str) -> list[Rule]:
    """The rules that judge the code, also the one for every code where none names it."""
    facts, catalog = lookup.facts(code), lookup.catalog
    found: list[Rule] = [rule for rule in (_frequency(lookup, facts), facts.duration) if rule is not None]
    found += [rule for rule in catalog.raising if canonical(rule.code) == facts.key]
    found += facts.common_causes
    if (relations := facts.relations) is not None:
        found += [rule for rule in catalog.relation if rule in (*relations.as_code, *relations.as_with)]
    return found


def _frequency(lookup: Lookup, facts: Facts) -> FrequencyRule | None:
    """The rule for every code only counts from a level on, which a duration rule may give."""
    row = facts.row
    if row is None:
        return facts.frequency
    rule = lookup.frequency_rule(facts, row.kind)
    if rule is None or rule.at_least is None or facts.duration is not None:
        return rule
    levels = (row.level, *row.levels.values())
    return rule if any(PRECEDENCE[level] >= PRECEDENCE[rule.at_least] for level in levels) else None


def contributions(
    published: messages.Published, device: DeviceView, lookup: Lookup, events: Iterable[StoredEvent]
) -> list[pb.Contribution]:
    """One for each reason of the device, in that order; ``events`` are given to the one they are about."""
    by_id: dict[str, list[StoredEvent]] = {each.id: [] for each in device.reasons}
    for stored in events:
        if (about := by_id.get(stored.event.condition_id)) is not None:
            about.append(stored)
    return [_contribution(published, device, each, lookup, by_id[each.id]) for each in device.reasons]


def _contribution(
    published: messages.Published,
    device: DeviceView,
    reason: Reason,
    lookup: Lookup,
    events: list[StoredEvent],
) -> pb.Contribution:
    view, kind = published.publication.view, reason.kind
    conditions = [each for each in view.conditions if kind == "condition" and each.id == reason.id]
    promotions = [each for each in view.promotions if kind == "promotion" and each.id == reason.id]
    holds = [each for each in view.holds if kind == "hold" and each.id == reason.id]
    sources = [
        each
        for each in view.sources
        if kind == "source" and each.name == reason.id and each.device_id in ("", device.id)
    ]
    return pb.Contribution(
        reason=messages.reason(reason),
        condition=published.condition(conditions[0]) if conditions else None,
        promotion=published.promotion(promotions[0]) if promotions else None,
        hold=published.hold(holds[0]) if holds else None,
        source=published.source(sources[0]) if sources else None,
        explanation=explanation(lookup, reason.code) if reason.code else None,
        events=[messages.event(each) for each in events],
    )
