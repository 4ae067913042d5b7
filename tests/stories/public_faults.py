"""Public faults as their senders report them, by the call that senders use."""

from collections.abc import Iterable, Sequence

from nodeagent.client import AsyncClient
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from tests.stories.npus import Npus

TYPE_OF_DIGIT = (
    pb.PUBLIC_FAULT_TYPE_NPU,
    pb.PUBLIC_FAULT_TYPE_NODE,
    pb.PUBLIC_FAULT_TYPE_NETWORK,
    pb.PUBLIC_FAULT_TYPE_STORAGE,
)
OCCUR, RECOVER = types_pb2.ASSERTION_OCCUR, types_pb2.ASSERTION_RECOVER
BEGAN_S = 1_780_000_000
SLOW, BROKEN, NO_CODE = "110001010", "020001001", "099999999"


def fault(
    code: str, fault_id: str, assertion: types_pb2.Assertion = OCCUR, chips: Iterable[int] = ()
) -> pb.PublicFault:
    """Of these chips; of none: of the node."""
    given = pb.PublicFault(
        fault_id=fault_id,
        fault_type=TYPE_OF_DIGIT[int(code[0])],
        code=code,
        assertion=assertion,
        influence=[pb.PublicFaultInfluence(device_ids=chips)],
    )
    given.began_at.FromSeconds(BEGAN_S)
    return given


def message(sender: str, faults: Sequence[pb.PublicFault]) -> pb.ReportPublicFaultRequest:
    request = pb.ReportPublicFaultRequest(id="message-1", version="1.0", sender=sender, faults=faults)
    request.sent_at.FromSeconds(BEGAN_S)
    return request


def control(npus: Npus) -> AsyncClient:
    return AsyncClient(npus.daemon.folder / "c.sock")
