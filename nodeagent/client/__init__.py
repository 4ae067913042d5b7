"""The library schedulers use: follow a node's faults, across restarts, without loss.

    with Client() as client:
        for update in client.watch(after=position):
            ...

``Client`` blocks, ``AsyncClient`` is the same for asyncio.
"""

from nodeagent.client.aio import AsyncClient
from nodeagent.client.calls import ClientError
from nodeagent.client.generated.sync import Client
from nodeagent.client.generated.values import (
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
    Promotion,
    Reason,
    Reset,
    Snapshot,
    Source,
)
from nodeagent.client.position import Bookmark, Position
from nodeagent.client.received import Update
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
