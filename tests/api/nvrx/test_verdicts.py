"""What verdicts say to NVRx, as a table."""

from dataclasses import replace

import pytest

from nodeagent.api.nvrx import NodeHealth, health
from nodeagent.core.model import DeviceView, Kind, Reason, Verdict
from tests.api.samples import NODE_DEVICE, device, event

CHIP = replace(device(event()), reasons=())
HOLD = Reason(kind="hold", id="hold-1", text="isolated by alice: fan swap")
FAULT = Reason(kind="condition", id="c-1", code="XID_79")
AGAIN = Reason(kind="promotion", id="p-1", code="XID_79")
SOURCE = Reason(kind="source", id="nvidia", text="no answer within 5 s")


def chip(verdict: Verdict, *reasons: Reason, kind: Kind = Kind.CHIP) -> DeviceView:
    return replace(CHIP, verdict=verdict, reasons=reasons, kind=kind)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ((), NodeHealth((), ())),
        ((NODE_DEVICE, chip(Verdict.ALLOW, FAULT)), NodeHealth((), ())),
        ((chip(Verdict.ISOLATE, FAULT),), NodeHealth(("gpu0 XID_79 ISOLATE",), ())),
        ((chip(Verdict.NO_NEW_JOBS, FAULT),), NodeHealth(("gpu0 XID_79 NO_NEW_JOBS",), ())),
        ((chip(Verdict.ISOLATE, FAULT, AGAIN, HOLD),), NodeHealth(("gpu0 XID_79 ISOLATE",), ())),
        ((chip(Verdict.ISOLATE, HOLD),), NodeHealth(("gpu0 hold ISOLATE",), ())),
        ((chip(Verdict.ISOLATE),), NodeHealth(("gpu0 ISOLATE",), ())),
        ((chip(Verdict.UNKNOWN, SOURCE),), NodeHealth((), ("gpu0 source UNKNOWN",))),
        ((chip(Verdict.ISOLATE, FAULT, kind=Kind.INSTANCE),), NodeHealth(("gpu0 XID_79 ISOLATE",), ())),
        ((chip(Verdict.ISOLATE, FAULT, kind=Kind.LINK),), NodeHealth((), ())),
        ((chip(Verdict.ISOLATE, FAULT, kind=Kind.UNIFIEDBUS),), NodeHealth((), ())),
        ((replace(NODE_DEVICE, verdict=Verdict.ISOLATE),), NodeHealth(("node ISOLATE",), ())),
    ],
    ids=[
        *("before the first state", "well", "isolated", "no new jobs", "one code, several reasons"),
        *("held by a person", "without a reason", "unknown", "a part of a chip", "a port", "a switch"),
        "the node",
    ],
)
def test_health(devices: tuple[DeviceView, ...], expected: NodeHealth) -> None:
    assert health(devices) == expected
