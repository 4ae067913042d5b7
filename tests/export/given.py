"""Messages of the stream to make records of: one event as a node sends it, and one with hostile texts."""

from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.shared.json_forms import form
from nodeagent.export.records import ExportRecord, records_of, resync_of
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2

AT = Timestamp(seconds=1_767_323_045, nanos=678_901_234)
NODE = types_pb2.NodeIdentity(node_id="0123456789abcdef0123456789abcdef", node_name="gpu-17")
STORE = types_pb2.StoreId(uuid="74f7d55f-b0e2-431c-83b9-62be023b78d0", epoch=2)

RAISED = types_pb2.Event(
    seq=4711,
    at=AT,
    kind=types_pb2.EVENT_KIND_RAISED,
    device="npu3",
    device_id="die-3",
    device_kind=types_pb2.KIND_CHIP,
    level=types_pb2.LEVEL_SEPARATE_NPU,
    verdict=types_pb2.VERDICT_ISOLATE,
    handling=types_pb2.HANDLING_RESCHEDULE,
    observed=True,
    code="80E01801",
    name="Multi-bit ECC errors when accessing the HBM",
    condition_id="die-3:80E01801:1",
    condition_level=types_pb2.LEVEL_SEPARATE_NPU,
    source="ascend",
    count=1,
    evidence={"line": "hbm 2"},
)
HOSTILE = types_pb2.Event(
    seq=4712,
    at=AT,
    kind=types_pb2.EVENT_KIND_NOTICE,
    device='a]"\\\n\x1bé' + "x" * 200,
    verdict=types_pb2.VERDICT_ALLOW,
    why="größer\n<0>1 - forged",
)
LOST = pb.Snapshot(
    seq=5000,
    reason=pb.SNAPSHOT_REASON_FELL_BEHIND,
    missed_from_seq=4713,
    at=AT,
    devices=[
        types_pb2.Device(name="node", id="n", verdict=types_pb2.VERDICT_ALLOW),
        types_pb2.Device(
            name="npu3",
            id="die-3",
            verdict=types_pb2.VERDICT_ISOLATE,
            reasons=[types_pb2.Reason(code="80E01801")],
        ),
    ],
)


def batch(*events: types_pb2.Event) -> pb.WatchResponse:
    return pb.WatchResponse(node=NODE, store_id=STORE, durable=True, batch=pb.EventBatch(events=events))


def snapshot(content: pb.Snapshot) -> pb.WatchResponse:
    return pb.WatchResponse(node=NODE, store_id=STORE, durable=True, snapshot=content)


def record_of(*events: types_pb2.Event) -> ExportRecord:
    """Of the one event."""
    (record,) = records_of(batch(*events), form)
    return record


def records() -> list[ExportRecord]:
    """Of the event, of the hostile one, and of the loss."""
    return [*records_of(batch(RAISED, HOSTILE), form), resync_of(snapshot(LOST), 4999)]


def numbered(*numbers: int) -> list[ExportRecord]:
    """Records of events with these numbers."""
    return list(records_of(batch(*(types_pb2.Event(seq=seq, at=AT, device="npu0") for seq in numbers)), form))
