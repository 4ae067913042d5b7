"""Which ports of the node a job's chips are behind, and which of them are down."""

from dataclasses import replace

from nodeagent.api.jobs import chips
from nodeagent.core.model import Condition, Grade, Kind, Level, Presence, View
from tests.api.samples import NODE_DEVICE

NEAR = replace(
    NODE_DEVICE, id="npu0-id", name="npu0", kind=Kind.CHIP, attributes={"upstream": "0000:3a:00.0"}
)
FAR = replace(NODE_DEVICE, id="npu1-id", name="npu1", kind=Kind.CHIP)
PORT = replace(NODE_DEVICE, id="eth2-id", name="eth2", kind=Kind.LINK, attributes={"pci": "0000:3a:00.0"})
NAMED = replace(NODE_DEVICE, id="eth3-id", name="eth3", kind=Kind.LINK, attributes={"chips": "npu0"})


def opened(port: str, code: str) -> Condition:
    return Condition(
        id=f"{port}/{code}",
        device_id=f"{port}-id",
        code=code,
        name="",
        source="link",
        presence=Presence(opened_ns=1, last_ns=1),
        grade=Grade(base_level=Level.SUB_HEALTH, level=Level.SUB_HEALTH),
    )


def test_needed_port_that_is_down_is_one_of_the_chips_behind_it() -> None:
    down = (opened("eth2", "PORT_DOWN"), opened("eth3", "PORT_MISSING"))
    view = View(devices=(NEAR, FAR, PORT, NAMED), conditions=down)

    assert chips.ports_down(view, (NEAR, FAR)) == {"npu0": ("eth2", "eth3"), "npu1": ()}


def test_port_that_is_up_again_or_that_no_job_needs_is_none() -> None:
    """A port that was down for long is in doubt for ten minutes more."""
    kept = (opened("eth2", "PORT_DROPPED"), opened("eth3", "ETHERNET_PORT_DOWN"))

    assert chips.ports_down(View(devices=(NEAR, PORT, NAMED), conditions=kept), (NEAR,)) == {"npu0": ()}
