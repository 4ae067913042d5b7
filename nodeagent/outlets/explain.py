"""What the tables in force say of a code, and what stands behind a verdict. It reads and judges nothing."""

from collections.abc import Iterable

from nodeagent.core.catalog import Catalog, ClearOn, canonical
from nodeagent.core.model import DeviceView, Reason
from nodeagent.outlets import messages
from nodeagent.outlets.pb import fault_service_pb2 as pb
from nodeagent.store.records import StoredEvent

_UNITS = (
    (86_400_000_000_000, "d"),
    (3_600_000_000_000, "h"),
    (60_000_000_000, "m"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
)


def explanation(catalog: Catalog, code: str) -> pb.CodeExplanation:
    """The row of the code or of its family; ``known`` is false where there is neither."""
    row = catalog.row(code)
    if row is None:
        return pb.CodeExplanation(code=code, known=False, rules=rules(catalog, code))
    is_family = row.code.endswith("*")
    return pb.CodeExplanation(
        code=code if is_family else row.code,
        known=True,
        kind=messages.KINDS[row.kind],
        vendor=row.vendor,
        name=row.name,
        level=messages.LEVELS[row.level],
        user_induced=row.user_induced,
        clear_on=clear_on(row.clear_on),
        description=row.description,
        action=row.action,
        rules=rules(catalog, code),
        file=row.file,
        family=row.code if is_family else "",
    )


def rules(catalog: Catalog, code: str) -> list[str]:
    """Ids of the rules that name the code; a frequency rule for every code stands for what none names."""
    key = canonical(code)

    def names(codes: Iterable[str]) -> bool:
        return any(canonical(each) == key or _in_family(key, each) for each in codes)

    row = catalog.row(code)
    frequency = [rule.id for rule in catalog.frequency if names(rule.codes)]
    if not frequency and row is not None:
        frequency = [rule.id for rule in catalog.frequency if "*" in rule.codes and rule.kind is row.kind]
    return [
        *frequency,
        *(rule.id for rule in catalog.duration if names(rule.codes)),
        *(rule.id for rule in catalog.threshold if names((rule.code,))),
        *(rule.id for rule in catalog.counter if names((rule.code,))),
        *(rule.id for rule in catalog.relation if names((rule.code, *rule.with_codes))),
    ]


def _in_family(key: str, family: str) -> bool:
    return len(family) > 1 and family.endswith("*") and key.startswith(canonical(family[:-1]))


def clear_on(value: ClearOn) -> list[str]:
    """In the words of the tables; the quiet time as a duration such as ``10m``."""
    words = [
        word
        for word, is_set in (
            ("recover", value.recover),
            ("reset", value.reset),
            ("reboot", value.reboot),
            ("job_end", value.job_end),
            ("operator", value.operator),
        )
        if is_set
    ]
    if value.quiet_ns is not None:
        words.append(_duration(value.quiet_ns))
    return words


def _duration(nanoseconds: int) -> str:
    for unit_ns, unit in _UNITS:
        if nanoseconds >= unit_ns and nanoseconds % unit_ns == 0:
            return f"{nanoseconds // unit_ns}{unit}"
    return f"{nanoseconds}ns"


def contributions(
    scene: messages.Scene, device: DeviceView, catalog: Catalog, events: Iterable[StoredEvent]
) -> list[pb.Contribution]:
    """One for each reason of the device, in that order; ``events`` are given to the one they are about."""
    by_id: dict[str, list[StoredEvent]] = {each.id: [] for each in device.reasons}
    for stored in events:
        if (told := by_id.get(stored.event.condition_id)) is not None:
            told.append(stored)
    return [_contribution(scene, device, each, catalog, by_id[each.id]) for each in device.reasons]


def _contribution(
    scene: messages.Scene, device: DeviceView, reason: Reason, catalog: Catalog, events: list[StoredEvent]
) -> pb.Contribution:
    view = scene.publication.view
    told = pb.Contribution(reason=messages.reason(reason), events=[messages.event(each) for each in events])
    if reason.code:
        told.explanation.CopyFrom(explanation(catalog, reason.code))
    for condition in view.conditions:
        if reason.kind == "condition" and condition.id == reason.id:
            told.condition.CopyFrom(scene.condition(condition))
    for promotion in view.promotions:
        if reason.kind == "promotion" and promotion.id == reason.id:
            told.promotion.CopyFrom(scene.promotion(promotion))
    for hold in view.holds:
        if reason.kind == "hold" and hold.id == reason.id:
            told.hold.CopyFrom(scene.hold(hold))
    for source in view.sources:
        if reason.kind == "source" and source.name == reason.id and source.device_id in ("", device.id):
            told.source.CopyFrom(scene.source(source))
    return told
