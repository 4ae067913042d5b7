"""The library schedulers use: follow a node's faults, across restarts, without loss.

    with Client() as client:
        for update in client.watch(after=position):
            ...

``Client`` blocks, ``AsyncClient`` is the same for asyncio.
"""

from nodeagent.client.aio import AsyncClient
from nodeagent.client.errors import ClientError
from nodeagent.client.sync import Client
from nodeagent.client.values import (
    Bookmark,
    Condition,
    Consumer,
    Device,
    Event,
    Hold,
    Holder,
    Job,
    JobClaim,
    JobNote,
    JobPolicy,
    Position,
    Promotion,
    Reason,
    Reset,
    Snapshot,
    Source,
    Update,
)
from nodeagent.core.model import (
    EventKind,
    Handling,
    HoldKind,
    JobStage,
    Kind,
    Level,
    Recommendation,
    ResetMode,
    ResetStage,
    Verdict,
    Wanted,
)

__all__ = [
    "AsyncClient",
    "Bookmark",
    "Client",
    "ClientError",
    "Condition",
    "Consumer",
    "Device",
    "Event",
    "EventKind",
    "Handling",
    "Hold",
    "HoldKind",
    "Holder",
    "Job",
    "JobClaim",
    "JobNote",
    "JobPolicy",
    "JobStage",
    "Kind",
    "Level",
    "Position",
    "Promotion",
    "Reason",
    "Recommendation",
    "Reset",
    "ResetMode",
    "ResetStage",
    "Snapshot",
    "Source",
    "Update",
    "Verdict",
    "Wanted",
]
