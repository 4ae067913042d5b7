"""Links of GPUs as subscribers see them: Xid 74 by its registers, and a fabric that is slow for a while."""

from nodeagent.client import EventKind, Verdict
from tests.harness.subscriber import without_gap
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.gpus import events_of, last_of, raised_on

CORRECTED = "0x0, 0x0, 0x0, 0x0, 0x100000, 0x0, 0x0"
PARITY = "0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0"
WHOLE, DEGRADED_BANDWIDTH = 0x1AA, 0x1A9


def failed(link: int, registers: str) -> str:
    return f"NVLink: fatal error detected on link {link}({registers})"


async def test_an_xid_74_is_as_grave_as_its_registers_say(launch_gpus: LaunchGpus, follow: Follow) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    daemon.xid("gpu1", 74, failed(3, CORRECTED))
    daemon.xid("gpu2", 74, failed(14, PARITY))
    mild = await subscriber.raised("XID_74.threshold", "gpu1")
    grave = await subscriber.raised("XID_74.parity", "gpu2")
    for gpu in ("gpu1", "gpu2"):
        daemon.gpus.raise_xid(gpu, 74)
    daemon.gpus.raise_xid("gpu3", 74)
    alone = await subscriber.raised("XID_74", "gpu3")

    assert (mild.verdict, mild.subhealthy, mild.evidence["link"]) == (Verdict.ALLOW, True, "3")
    assert (grave.verdict, grave.evidence["registers"]) == (Verdict.ISOLATE, PARITY)
    assert alone.verdict is Verdict.ISOLATE
    assert [raised_on(subscriber, gpu) for gpu in ("gpu1", "gpu2")] == [
        ["XID_74.threshold"],
        ["XID_74.parity"],
    ]
    explained = await daemon.explained(["XID_74.threshold", "XID_74.parity"])
    assert [(row["level"], row["level_source"]) for row in explained] == [
        ("SubHealthFault", "xid_catalogue"),
        ("RestartNPU", "xid_catalogue"),
    ]


async def test_while_a_fabric_is_slow_its_gpu_takes_no_new_jobs(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    code = "NV_FABRIC_DEGRADED_BANDWIDTH"
    daemon = launch_gpus("2xB200")
    subscriber = await follow(daemon)
    daemon.node.set("gpu1", "gpu_fabric_health_mask", DEGRADED_BANDWIDTH)
    raised = await subscriber.raised(code, "gpu1")
    daemon.node.set("gpu1", "gpu_fabric_health_mask", WHOLE)
    await subscriber.cleared(code, "gpu1")

    assert (raised.verdict, last_of(subscriber, "gpu1").verdict) == (Verdict.NO_NEW_JOBS, Verdict.ALLOW)
    assert events_of(subscriber, "gpu1", code) == [EventKind.RAISED, EventKind.CLEARED]
    assert without_gap(subscriber.events)
