"""A GPU whose GSP does not answer: each call for it takes until it is given up, and holds up all others."""

import pynvml

from nodeagent.core.model import SourceLost, Verdict
from tests.daemon.staged import staged
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

TIME_OUT_MS = 3000
CALL_DEADLINE_S = 1.5
"""Shorter than a time-out, as the default deadline of 5 s is."""


async def test_the_gpu_that_times_out_is_accused_alone(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(call_deadline_s=CALL_DEADLINE_S, stall_deadline_s=30.0), judge) as stage:
        await stage.back()
        h100.node.time_out("gpu2", delay_ms=TIME_OUT_MS, answer=pynvml.NVML_ERROR_TIMEOUT)
        h100.gpus.raise_xid("gpu2", 119)
        lost = await stage.lost("gpu2")
        for name in ("gpu0", "gpu1", "gpu3"):
            await stage.polled(name, times=3)

        assert stage.health.restarts == 0
        assert "hung for 3 s: TIMEOUT" in lost.reason or "within 1.5 s" in lost.reason
        assert {g.device for g in stage.inputs if isinstance(g, SourceLost)} == {"gpu2"}
        verdicts = {name: judge.view(name).verdict for name in h100.node.names()}
        assert verdicts == {
            "gpu0": Verdict.ALLOW,
            "gpu1": Verdict.ALLOW,
            "gpu2": Verdict.ISOLATE,
            "gpu3": Verdict.ALLOW,
        }


async def test_a_gpu_that_timed_out_is_left_alone_for_a_while(h100: GpuNode) -> None:
    async with staged(h100.spec(call_deadline_s=CALL_DEADLINE_S, stall_deadline_s=30.0)) as stage:
        await stage.back()
        function = "nvmlDeviceGetFieldValues"
        before = h100.node.calls(function, "gpu2")
        h100.node.time_out("gpu2", function, delay_ms=TIME_OUT_MS, answer=pynvml.NVML_ERROR_TIMEOUT)
        await stage.lost("gpu2")
        # Its own time-out over, the others are asked many times before it is asked again.
        await stage.until(lambda: "hung for 3 s: TIMEOUT" in str(stage.inputs[-20:]) or None)
        asked = h100.node.calls(function, "gpu2")
        await stage.polled("gpu1", times=20)
        assert h100.node.calls(function, "gpu2") == asked
        assert asked > before
