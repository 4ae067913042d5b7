"""Resets as protobuf messages: those that go on or ended of late, and those that are only rehearsed."""

from google.protobuf.duration_pb2 import Duration

from nodeagent.core.model import Reset
from nodeagent.core.rehearsal import Rehearsal
from nodeagent.outlets.messages import RESET_MODES, RESET_STAGES, Scene
from nodeagent.outlets.pb import control_service_pb2, types_pb2

_SECOND_NS = 1_000_000_000


def resets(scene: Scene) -> list[types_pb2.Reset]:
    """Every one that touches a device of the scene."""
    return [
        reset(scene, each) for each in scene.publication.view.resets if any(map(scene.wants, each.members))
    ]


def reset(scene: Scene, value: Reset) -> types_pb2.Reset:
    return types_pb2.Reset(
        id=value.id,
        devices=[scene.name_of(each) for each in value.members],
        device_ids=value.members,
        mode=RESET_MODES[value.mode],
        stage=RESET_STAGES[value.stage],
        codes=value.codes,
        condition_ids=value.conditions,
        who=value.who,
        reason=value.reason,
        attempt=value.attempt,
        approved=value.approved,
        blocked_by=value.hindered,
        proposed_at=scene.at(value.proposed_ns),
        due_at=None if value.due_ns is None else scene.at(value.due_ns),
        started_at=None if value.started_ns is None else scene.at(value.started_ns),
        ended_at=None if value.ended_ns is None else scene.at(value.ended_ns),
        verified=[scene.name_of(each) for each in value.verified],
        result=value.result,
        report=value.report,
    )


def plan(value: Rehearsal) -> control_service_pb2.ResetPlan:
    return control_service_pb2.ResetPlan(
        devices=value.devices,
        mode=RESET_MODES[value.mode],
        refused=value.refused,
        blocked_by=value.hindered,
        used=[
            control_service_pb2.ResetsUsed(device=each.device, resets=each.resets, limit=each.limit)
            for each in value.used
        ],
        window=_duration(value.window_ns),
        steps=[
            control_service_pb2.ResetStep(
                after=None if each.after_ns is None else _duration(each.after_ns), what=each.what
            )
            for each in value.steps
        ],
    )


def _duration(length_ns: int) -> Duration:
    seconds, nanos = divmod(length_ns, _SECOND_NS)
    return Duration(seconds=seconds, nanos=nanos)
