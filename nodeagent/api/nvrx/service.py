"""``HealthCheckService.RunHealthCheck`` of NVRx: the state in force, as its client reads it.

NVRx takes a node for unhealthy if ``success`` is false, or ``fail_count`` of the JSON in ``output`` is not 0
or not there (``NodeHealthCheck._perform_health_check`` of its ``shared_utils/health_check.py``, version
0.7.0). Where nobody answers it goes on without this check. Arguments are for a script, and mean nothing here.
"""

import json

import grpc
from google.protobuf.message import Message

from nodeagent.api.nvrx.messages import HealthCheckResponse
from nodeagent.api.nvrx.verdicts import health
from nodeagent.store.event_feed import EventFeed


class NodeHealthService:
    """Shared by all connections; used from one event loop."""

    def __init__(self, feed: EventFeed) -> None:
        self._feed = feed

    async def run_health_check(self, _request: Message, _context: grpc.aio.ServicerContext) -> Message:
        found = health(self._feed.current.view.devices)
        said = {
            "fail_count": len(found.failed),
            "failed_checks": found.failed,
            "unknown_checks": found.unknown,
        }
        answer: Message = HealthCheckResponse(
            success=not found.failed,
            exit_code=1 if found.failed else 0,
            output=json.dumps(said),
            error="; ".join(found.failed),
        )
        return answer
