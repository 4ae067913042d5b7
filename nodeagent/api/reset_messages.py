"""Resets as protobuf messages: those in progress or ended of late, and what one would do."""

from nodeagent.api.messages import Published
from nodeagent.core.machines.reset_refusal import DryRun, Step, Used
from nodeagent.core.model import Reset
from nodeagent.messages.mapping import writer
from nodeagent.messages.pb import control_service_pb2, types_pb2

_reset = writer(
    Reset,
    types_pb2.Reset,
    computed=["devices", "verified"],
    renamed={"device_ids": "members", "condition_ids": "conditions", "blocked_by": "hindered"},
    unsent=["asker_id", "confirmed", "verified", "outcome", "may_ask_again", "told", "unsettled_ns"],
)
_used = writer(Used, control_service_pb2.ResetsUsed)
_step = writer(Step, control_service_pb2.ResetStep)
plan = writer(
    DryRun,
    control_service_pb2.ResetPlan,
    unsent=["setting"],
    parts={control_service_pb2.ResetsUsed: _used, control_service_pb2.ResetStep: _step},
)


def resets(published: Published) -> list[types_pb2.Reset]:
    """Every one that touches a device that is wanted."""
    return [
        reset(published, each)
        for each in published.publication.view.resets
        if any(map(published.wants, each.members))
    ]


def reset(published: Published, value: Reset) -> types_pb2.Reset:
    return _reset(
        value,
        published.publication.wall_offset_ns,
        devices=[published.name_of(each) for each in value.members],
        verified=[published.name_of(each) for each in value.verified],
    )
