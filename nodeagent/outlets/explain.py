"""What the tables in force say of a code, and what stands behind a verdict. It reads and judges nothing."""

from collections.abc import Iterable

from nodeagent.core.catalog import canonical
from nodeagent.core.lookup import Lookup
from nodeagent.core.model import DeviceView, Reason
from nodeagent.outlets import messages
from nodeagent.outlets.pb import fault_service_pb2 as pb
from nodeagent.store.records import StoredEvent
from nodeagent.tables import words


def explanation(lookup: Lookup, code: str) -> pb.CodeExplanation:
    """The row of the code or of its family; ``known`` is false where there is neither."""
    facts = lookup.facts(code)
    row = facts.row
    if row is None:
        return pb.CodeExplanation(
            code=facts.code, known=False, name=facts.decoded or "", rules=rules(lookup, code)
        )
    return pb.CodeExplanation(
        code=facts.code,
        known=True,
        kind=messages.KINDS[row.kind],
        vendor=row.vendor,
        name=row.name,
        level=messages.LEVELS[row.level],
        user_induced=row.user_induced,
        clear_on=words.clear_on(row.clear_on),
        description=row.description,
        action=row.action,
        rules=rules(lookup, code),
        file=row.file,
        family=row.code if facts.is_family else "",
    )


def rules(lookup: Lookup, code: str) -> list[str]:
    """Ids of the rules that judge the code, also of the one for every code where none names it."""
    facts, catalog = lookup.facts(code), lookup.catalog
    frequency = facts.frequency if facts.row is None else lookup.frequency_rule(facts, facts.row.kind)
    found = [rule.id for rule in (frequency, facts.duration) if rule is not None]
    found += [rule.id for rule in catalog.threshold if canonical(rule.code) == facts.key]
    found += [rule.id for rule in catalog.counter if canonical(rule.code) == facts.key]
    found += [
        rule.id
        for rule in catalog.relation
        if any(_names(each, facts.key) for each in (rule.code, *rule.with_codes))
    ]
    return found


def _names(pattern: str, key: str) -> bool:
    """Whether a relation's code, or family of codes, is about this one."""
    if pattern.endswith("*"):
        return key.startswith(pattern[:-1].upper())
    return canonical(pattern) == key


def contributions(
    scene: messages.Scene, device: DeviceView, lookup: Lookup, events: Iterable[StoredEvent]
) -> list[pb.Contribution]:
    """One for each reason of the device, in that order; ``events`` are given to the one they are about."""
    by_id: dict[str, list[StoredEvent]] = {each.id: [] for each in device.reasons}
    for stored in events:
        if (about := by_id.get(stored.event.condition_id)) is not None:
            about.append(stored)
    return [_contribution(scene, device, each, lookup, by_id[each.id]) for each in device.reasons]


def _contribution(
    scene: messages.Scene, device: DeviceView, reason: Reason, lookup: Lookup, events: list[StoredEvent]
) -> pb.Contribution:
    view, kind = scene.publication.view, reason.kind
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
        condition=scene.condition(conditions[0]) if conditions else None,
        promotion=scene.promotion(promotions[0]) if promotions else None,
        hold=scene.hold(holds[0]) if holds else None,
        source=scene.source(sources[0]) if sources else None,
        explanation=explanation(lookup, reason.code) if reason.code else None,
        events=[messages.event(each) for each in events],
    )
