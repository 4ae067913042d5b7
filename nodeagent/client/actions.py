"""Actions as values of the client: resets that go on or ended of late."""

from dataclasses import dataclass
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.client.times import moment
from nodeagent.core.model import ResetMode, ResetStage
from nodeagent.outlets import enums
from nodeagent.outlets.pb import types_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """The reset of a group of devices (names), the one that asked first.

    ``who`` is the person who asked, "" where the faults ``codes`` did. ``blocked_by`` says in words what
    stands in its way. ``due_at`` is when its stage ends by itself. ``result`` begins with done, failed,
    timed_out, interrupted or refused, and is "" until it has ended; ``report`` is how it was done. An unknown
    mode or stage is None.
    """

    id: str
    devices: tuple[str, ...]
    device_ids: tuple[str, ...]
    mode: ResetMode | None
    stage: ResetStage | None
    codes: tuple[str, ...]
    condition_ids: tuple[str, ...]
    who: str
    reason: str
    attempt: int
    approved: bool
    blocked_by: tuple[str, ...]
    proposed_at: datetime
    due_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    verified: tuple[str, ...]
    result: str
    report: str


def reset(message: types_pb2.Reset) -> Reset:
    return Reset(
        id=message.id,
        devices=tuple(message.devices),
        device_ids=tuple(message.device_ids),
        mode=enums.RESET_MODE_OF.get(message.mode),
        stage=enums.RESET_STAGE_OF.get(message.stage),
        codes=tuple(message.codes),
        condition_ids=tuple(message.condition_ids),
        who=message.who,
        reason=message.reason,
        attempt=message.attempt,
        approved=message.approved,
        blocked_by=tuple(message.blocked_by),
        proposed_at=moment(message.proposed_at),
        due_at=_moment_if_set(message.due_at),
        started_at=_moment_if_set(message.started_at),
        ended_at=_moment_if_set(message.ended_at),
        verified=tuple(message.verified),
        result=message.result,
        report=message.report,
    )


def _moment_if_set(stamp: Timestamp) -> datetime | None:
    return moment(stamp) if stamp.seconds or stamp.nanos else None
