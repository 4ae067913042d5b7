"""Jobs as protobuf messages: those that use this node, and those that ended of late."""

from nodeagent.api.messages import Published
from nodeagent.core.model import NODE, JobPolicy, JobView
from nodeagent.messages.mapping import writer
from nodeagent.messages.pb import types_pb2

_policy = writer(JobPolicy, types_pb2.JobPolicy)
_job = writer(
    JobView,
    types_pb2.Job,
    computed=["devices", "device", "pid", "uid", "since"],
    renamed={"device_ids": "devices"},
    unsent=["peer", "said", "since_ns"],
    parts={types_pb2.JobPolicy: _policy},
)


def jobs(published: Published) -> list[types_pb2.Job]:
    """Every one that uses a device that is wanted; with the node all."""
    return [
        job(published, each)
        for each in published.publication.view.jobs
        if published.wants(NODE) or any(map(published.wants, each.devices))
    ]


def job(published: Published, value: JobView) -> types_pb2.Job:
    return _job(
        value,
        published.publication.wall_offset_ns,
        devices=[published.name_of(each) for each in value.devices],
        device=published.name_of(value.device_id) if value.device_id else "",
        pid=value.peer.pid if value.peer else 0,
        uid=value.peer.uid if value.peer else 0,
        since=published.at(value.since_ns) if value.stage else None,
    )
