"""GPUs without persistence mode: the first handle of each takes seconds, and all else waits meanwhile."""

from nodeagent.core.model import DeviceSeen, SourceLost
from tests.daemon.staged import HANG_S, staged
from tests.drivers.nvidia.bench import GpuNode

DISCOVERY_MS = 800
"""For four GPUs longer than one call may take, and longer than one GPU is waited for by itself."""


async def test_gpus_that_start_slowly_are_observed_at_the_first_attempt(h100: GpuNode) -> None:
    for name in h100.node.names():
        h100.node.set(name, "gpu_persistence_mode", 0)
        h100.node.set(name, "gpu_discovery_ms", DISCOVERY_MS)
    async with staged(h100.spec(call_deadline_s=HANG_S / 2)) as stage:
        await stage.back()
        assert stage.health.restarts == 0
        assert stage.faults("driver_unresponsive") == []
        assert [given for given in stage.inputs if isinstance(given, SourceLost)] == []
        seen = [g for g in stage.inputs if isinstance(g, DeviceSeen)]
        assert sorted((g.device, g.identity) for g in seen) == [
            (name, h100.gpus.uuid(name)) for name in h100.node.names()
        ]
