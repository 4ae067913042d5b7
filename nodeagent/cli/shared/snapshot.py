"""The state of the node at one moment: the Snapshot with which a Watch begins. One call, one moment."""

from nodeagent.cli.shared.errors import EXIT_UNAVAILABLE, Failure
from nodeagent.client import Client
from nodeagent.client.calls import CALL_TIMEOUT_S
from nodeagent.messages.pb import fault_service_pb2 as pb


def take(daemon: Client) -> pb.WatchResponse:
    """The response that holds the Snapshot, and with it node, store and durability."""
    request = pb.WatchRequest(snapshot=pb.SNAPSHOT_MODE_ALWAYS)
    response: pb.WatchResponse
    for response in daemon.stream(request, timeout_s=CALL_TIMEOUT_S):
        if response.HasField("snapshot"):
            return response
    raise Failure("the daemon ended the stream before it sent its state", EXIT_UNAVAILABLE)
