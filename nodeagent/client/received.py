"""From the messages that are received to the values that the client hands out.

Numbers that a newer daemon may send and this library does not know become the careful choice: an
unknown verdict is ``UNKNOWN``, an unknown level or kind of device is None, an unknown event a notice.
"""

from nodeagent.client import actions
from nodeagent.client.times import moment
from nodeagent.client.values import (
    Condition,
    Consumer,
    Device,
    Event,
    Hold,
    Holder,
    Position,
    Promotion,
    Reason,
    Snapshot,
)
from nodeagent.core.model import EventKind, Handling, Verdict
from nodeagent.outlets import enums
from nodeagent.outlets.pb import fault_service_pb2, types_pb2


def position(store_id: types_pb2.StoreId, seq: int) -> Position:
    return Position(uuid=store_id.uuid, epoch=store_id.epoch, seq=seq)


def reason(message: types_pb2.Reason) -> Reason:
    return Reason(
        kind=enums.REASON_KIND_OF.get(message.kind, ""),
        id=message.id,
        code=message.code,
        level=enums.LEVEL_OF.get(message.level),
        text=message.text,
    )


def event(message: types_pb2.Event, store_id: types_pb2.StoreId) -> Event:
    return Event(
        position=position(store_id, message.seq),
        at=moment(message.at),
        kind=enums.EVENT_KIND_OF.get(message.kind, EventKind.NOTICE),
        device=message.device,
        device_id=message.device_id,
        device_kind=enums.KIND_OF.get(message.device_kind),
        level=enums.LEVEL_OF.get(message.level),
        verdict=enums.VERDICT_OF.get(message.verdict, Verdict.UNKNOWN),
        handling=enums.HANDLING_OF.get(message.handling, Handling.NONE),
        subhealthy=message.subhealthy,
        observed=message.observed,
        code=message.code,
        name=message.name,
        condition_id=message.condition_id,
        condition_level=enums.LEVEL_OF.get(message.condition_level),
        rule=message.rule,
        source=message.source,
        count=message.count,
        user_induced=message.user_induced,
        unknown=message.unknown,
        injected=message.injected,
        userspace=message.userspace,
        why=message.why,
        reasons=tuple(reason(each) for each in message.reasons),
        evidence=dict(message.evidence),
    )


def device(message: types_pb2.Device) -> Device:
    return Device(
        id=message.id,
        name=message.name,
        kind=enums.KIND_OF.get(message.kind),
        vendor=message.vendor,
        level=enums.LEVEL_OF.get(message.level),
        verdict=enums.VERDICT_OF.get(message.verdict, Verdict.UNKNOWN),
        handling=enums.HANDLING_OF.get(message.handling, Handling.NONE),
        subhealthy=message.subhealthy,
        observed=message.observed,
        observed_at=moment(message.observed_at) if message.HasField("observed_at") else None,
        reasons=tuple(reason(each) for each in message.reasons),
        attributes=dict(message.attributes),
        holders=_holders(message.holders) if message.HasField("holders") else None,
    )


def _holders(message: types_pb2.Holders) -> tuple[Holder, ...]:
    return tuple(
        Holder(pid=each.pid, start_time=each.start_time, command=each.command, job=each.job)
        for each in message.holders
    )


def condition(message: types_pb2.Condition) -> Condition:
    return Condition(
        id=message.id,
        device_id=message.device_id,
        device=message.device,
        code=message.code,
        name=message.name,
        source=message.source,
        level=enums.LEVEL_OF.get(message.level),
        base_level=enums.LEVEL_OF.get(message.base_level),
        opened_at=moment(message.opened_at),
        last_at=moment(message.last_at),
        count=message.count,
        user_induced=message.user_induced,
        unknown=message.unknown,
        injected=message.injected,
        affects_verdict=message.affects_verdict,
        evidence=dict(message.evidence),
    )


def promotion(message: types_pb2.Promotion) -> Promotion:
    return Promotion(
        id=message.id,
        device_id=message.device_id,
        device=message.device,
        rule=message.rule,
        code=message.code,
        name=message.name,
        level=enums.LEVEL_OF.get(message.level),
        fired_at=moment(message.fired_at),
        effective=message.effective,
    )


def hold(message: types_pb2.Hold) -> Hold:
    return Hold(
        id=message.id,
        kind=enums.HOLD_KIND_OF.get(message.kind),
        device_id=message.device_id,
        device=message.device,
        owner=message.owner,
        reason=message.reason,
        since=moment(message.since),
        until=moment(message.until) if message.HasField("until") else None,
        set_by=message.set_by,
    )


def consumer(message: fault_service_pb2.Consumer) -> Consumer:
    return Consumer(
        name=message.name,
        owner=message.owner,
        seq=message.seq,
        lag=message.lag,
        acked_at=moment(message.acked_at),
    )


def snapshot(response: fault_service_pb2.WatchResponse) -> Snapshot:
    message = response.snapshot
    name = fault_service_pb2.SnapshotReason.Name(message.reason)
    return Snapshot(
        position=position(response.store_id, message.seq),
        reason=name.removeprefix("SNAPSHOT_REASON_").lower(),
        durable=response.durable,
        missed_from_seq=message.missed_from_seq,
        at=moment(message.at),
        catalog_digest=message.catalog_digest,
        devices=tuple(device(each) for each in message.devices),
        conditions=tuple(condition(each) for each in message.conditions),
        promotions=tuple(promotion(each) for each in message.promotions),
        holds=tuple(hold(each) for each in message.holds),
        resets=tuple(actions.reset(each) for each in message.resets),
    )
