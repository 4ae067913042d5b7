"""What a GPU does not answer, in words that fit, and only once it has lasted.

One optional call that fails for ever keeps nothing else from recovering or from being verified.

A GPU whose GSP does not answer: each call for it takes until it is given up, and holds up all others.
"""

import pynvml
import pytest

from nodeagent.core.model import SourceLost, Verdict
from nodeagent.drivers.nvidia.gpu import LASTING, MAX_TEXT, Lasting, Unanswered
from nodeagent.drivers.nvidia.nvml.baseline import Question
from tests.daemon.staged import staged
from tests.drivers.nvidia.bench import GpuNode, Judge, judged


def test_what_comes_and_goes_is_not_shown() -> None:
    lasting = Lasting()
    for _ in range(10):
        assert lasting.see({"a": "UNKNOWN"}) == {}
        assert lasting.see({}) == {}


def test_what_lasts_is_shown_until_it_has_been_away_as_long() -> None:
    lasting = Lasting()
    seen = [dict(lasting.see({"a": "UNKNOWN"})) for _ in range(LASTING)]
    assert seen == [{}] * (LASTING - 1) + [{"a": "UNKNOWN"}]
    away = [dict(lasting.see({})) for _ in range(LASTING)]
    assert away == [{"a": "UNKNOWN"}] * (LASTING - 1) + [{}]


def shown(questions: dict[Question, int]) -> str:
    unanswered = Unanswered()
    changes = [unanswered.see(questions, []) for _ in range(LASTING)]
    assert changes == [False] * (LASTING - 1) + [True]
    return unanswered.attributes["unanswered"]


def test_the_same_question_about_many_links_is_one() -> None:
    questions: dict[Question, int] = {("field", 165, link): 3 for link in range(18)}
    assert shown(questions) == "NVLINK_GET_STATE (x18) NOT_SUPPORTED"
    assert shown({("field", 165, 3): 3, ("nvmlDeviceGetClockInfo", 1): 999}) == (
        "NVLINK_GET_STATE/3 NOT_SUPPORTED, nvmlDeviceGetClockInfo/1 UNKNOWN"
    )


def test_many_questions_are_cut_to_what_an_attribute_may_hold() -> None:
    text = shown({(f"nvmlDeviceGetNumber{number:02}",): 4 for number in range(40)})
    assert len(text) <= MAX_TEXT
    assert text.startswith("nvmlDeviceGetNumber00 NO_PERMISSION, ")
    assert text.endswith(" more")


ALWAYS_FAILING = {
    "nvmlDeviceGetGpuFabricInfoV": pynvml.NVML_ERROR_NO_PERMISSION,
    "nvmlDeviceGetSramEccErrorStatus": pynvml.NVML_ERROR_UNKNOWN,
    "field:165": pynvml.NVML_ERROR_TIMEOUT,
    "field:230": pynvml.NVML_ERROR_UNKNOWN,
}


@pytest.mark.parametrize("function", ALWAYS_FAILING)
async def test_what_another_call_shows_is_over_while_one_fails(
    h100: GpuNode, judge: Judge, function: str
) -> None:
    h100.node.answer(ALWAYS_FAILING[function], "gpu1", function)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.remap("gpu1", uncorrected=1, pending=True)
        await stage.until(lambda: "XID_63" in judge.open("gpu1") or None)
        h100.gpus.remap("gpu1", pending=False)
        await stage.until(lambda: "XID_63" not in judge.open("gpu1") or None)


async def test_what_the_failing_call_would_show_stays_until_it_answers(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.set_recovery_action("gpu1", 1, deliver=False)
        await stage.until(lambda: "XID_154.1" in judge.open("gpu1") or None)
        number = h100.node.answer(pynvml.NVML_ERROR_UNKNOWN, "gpu1", "field:230")
        h100.gpus.set_recovery_action("gpu1", 0, deliver=False)
        await stage.polled("gpu1", times=5)
        assert "XID_154.1" in judge.open("gpu1")
        h100.node.release(number)
        await stage.until(lambda: "XID_154.1" not in judge.open("gpu1") or None)


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
