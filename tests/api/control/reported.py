"""A message of another system with the most that it may hold, and the node and the sender for it."""

from nodeagent.api.control.reportable import ThisNode
from nodeagent.api.control.senders import Reporter
from nodeagent.api.request_fields import DeviceNames
from nodeagent.core.model import (
    DeviceView,
    Handling,
    Kind,
    Level,
    Verdict,
)
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from tests.core.build import catalog, row

BEGAN_S = 1_780_000_000
TABLES = catalog(row("010001001", Level.SUB_HEALTH, kind=Kind.PUBLIC), row("80E18005"))


def device(name: str, kind: Kind = Kind.CHIP) -> DeviceView:
    return DeviceView(
        id=f"id-{name}",
        name=name,
        kind=kind,
        vendor="ascend",
        level=Level.NOT_HANDLE,
        verdict=Verdict.ALLOW,
        handling=Handling.NONE,
        subhealthy=False,
        observed=True,
        observed_ns=0,
    )


NODE = ThisNode(
    name="Node-7",
    serial="SN7",
    devices=DeviceNames((device("node", Kind.NODE), device("npu0"), device("npu5"))),
    catalog=TABLES,
    now_ms=(BEGAN_S + 60) * 1000,
)
CCAE = Reporter(sender="CCAE", by="certificate:ccae.example.org", ends_all=False)


def request() -> pb.ReportPublicFaultRequest:
    """The largest that is right."""
    given = pb.PublicFault(
        fault_id="f" * 128,
        fault_type=pb.PUBLIC_FAULT_TYPE_NETWORK,
        code="010001001",
        assertion=types_pb2.ASSERTION_OCCUR,
        location={f"key-{number:012}": "v" * 128 for number in range(10)},
        influence=[pb.PublicFaultInfluence(node_name="node-7", device_ids=[5, 0])] * 1000,
        description="d" * 512,
    )
    given.began_at.FromMilliseconds(BEGAN_S * 1000 + 123)
    message = pb.ReportPublicFaultRequest(id="a-b_c.D9", version="1.0", sender="CCAE", faults=[given] * 100)
    message.sent_at.FromSeconds(BEGAN_S)
    return message
