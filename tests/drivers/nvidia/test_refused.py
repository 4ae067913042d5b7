"""What NVML refuses or fails: for one field, one call, one GPU and one moment only, and never unseen."""

import pynvml
import pytest

from nodeagent.core.model import DeviceSeen, ProcessesListed, Verdict
from nodeagent.drivers.nvidia import events
from nodeagent.drivers.nvidia.checks.memory import MemoryState
from nodeagent.drivers.nvidia.events import Doubles, EventOwner, GpuEvents
from nodeagent.drivers.nvidia.nvml.baseline import GpuBaseline
from nodeagent.drivers.nvidia.nvml.calls import AGAIN_AFTER_NEWS_S, AGAIN_S, Calls
from nodeagent.drivers.nvidia.nvml.fields import FieldValues
from nodeagent.wire import MAX_BASELINE, Signal
from tests.daemon.staged import Staged
from tests.drivers.nvidia.bench import GpuNode, Judge, judged
from tests.emulator.nvml.conftest import Opened
from tests.waiting import wait_until

NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
NO_PERMISSION = pynvml.NVML_ERROR_NO_PERMISSION
FIELD_VALUES = "nvmlDeviceGetFieldValues"
ROWS = "nvmlDeviceGetRemappedRows*"
PENDING = {"XID_63": "FreeRestartNPU"}
MEMORY_TEMPERATURE = (pynvml.NVML_FI_DEV_MEMORY_TEMP, 0)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def shown(stage: Staged, gpu: str, key: str, value: str) -> None:
    """Until the GPU is described so; "": without the key."""
    await stage.until(
        lambda: next(
            (
                given.attributes.get(key, "") == value
                for given in reversed(stage.inputs)
                if isinstance(given, DeviceSeen) and given.device == gpu
            ),
            None,
        ),
        f"{gpu} with {key} {value!r}",
    )


async def test_a_call_for_fields_that_is_refused_for_a_while_blinds_nobody_for_ever(
    h100: GpuNode, judge: Judge
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        number = h100.node.answer(NOT_SUPPORTED, "gpu2", FIELD_VALUES)
        await stage.until(lambda: "temperature_celsius.memory" not in stage.health.readings["gpu2"])
        h100.node.release(number)
        await stage.until(lambda: "temperature_celsius.memory" in stage.health.readings["gpu2"])
        h100.gpus.set_recovery_action("gpu2", 1, deliver=False)
        await stage.until(lambda: "XID_154.1" in judge.open("gpu2"))
        h100.gpus.set_link("gpu2", 3, active=False)
        await stage.until(lambda: "NV_NVLINK_INACTIVE" in judge.open("gpu2"))


async def test_rows_that_are_refused_for_a_while_are_asked_for_again(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        numbers = [
            h100.node.answer(NOT_SUPPORTED, "gpu1", name)
            for name in (ROWS, "field:142", "field:143", "field:144", "field:145")
        ]
        await stage.until(lambda: "remap_pending" not in stage.health.readings["gpu1"])
        for number in numbers:
            h100.node.release(number)
        h100.gpus.remap("gpu1", uncorrected=1, pending=True)
        await stage.until(lambda: judge.open("gpu1") == PENDING)


async def test_a_fault_is_not_over_because_its_question_is_refused(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.remap("gpu1", uncorrected=1, pending=True)
        await stage.until(lambda: judge.open("gpu1") == PENDING)
        for name in (ROWS, "field:142", "field:143", "field:144", "field:145"):
            h100.node.answer(NOT_SUPPORTED, "gpu1", name)
        await stage.polled("gpu1", times=12)
        assert judge.open("gpu1") == PENDING
    async with judged(judge.kept(h100.spec()), judge) as stage:
        await stage.polled("gpu1", times=12)
        assert judge.open("gpu1") == PENDING


async def test_a_library_whose_call_fails_where_no_field_has_a_value_is_read_as_any_other(
    h100: GpuNode, judge: Judge
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu0", times=7)
        usual = set(stage.health.readings["gpu0"])
    h100.node.set_node("gpu_unpopulated_answer", NOT_SUPPORTED)
    async with judged(h100.spec(), Judge()) as stage:
        await stage.polled("gpu0", times=7)
        assert usual - set(stage.health.readings["gpu0"]) == set()


async def test_what_is_refused_after_it_was_answered_is_shown(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        number = h100.node.answer(NOT_SUPPORTED, "gpu1", "field:82")
        await shown(stage, "gpu1", "unanswered", "MEMORY_TEMP NOT_SUPPORTED")
        assert stage.health.readings["gpu1"]["unanswered"] == 1.0
        h100.node.release(number)
        await shown(stage, "gpu1", "unanswered", "")
        assert stage.health.readings["gpu1"]["unanswered"] == 0.0


async def test_what_a_product_never_had_is_not_missed(h100: GpuNode, judge: Judge) -> None:
    h100.node.answer(NOT_SUPPORTED, "gpu1", "field:82")
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu1", times=30)
        assert stage.health.readings["gpu1"]["unanswered"] == 0.0


async def test_what_was_answered_to_an_earlier_worker_is_missed_by_the_next(
    h100: GpuNode, judge: Judge
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu1", times=7)
    h100.node.answer(NOT_SUPPORTED, "gpu1", "field:82")
    async with judged(judge.kept(h100.spec()), judge) as stage:
        await shown(stage, "gpu1", "unanswered", "MEMORY_TEMP NOT_SUPPORTED")


async def test_under_another_driver_nothing_is_missed_that_it_does_not_have(
    h100: GpuNode, judge: Judge
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu1", times=7)
    h100.gpus.driver.make_older("535")
    async with judged(judge.kept(h100.spec()), judge) as stage:
        await stage.polled("gpu1", times=30)
        assert stage.health.readings["gpu1"]["unanswered"] == 0.0


async def test_what_a_gpu_may_not_be_asked_for_is_shown_with_the_codes_that_it_is_not_judged_by(
    h100: GpuNode, judge: Judge
) -> None:
    h100.node.answer(NO_PERMISSION, "gpu1", ROWS)
    async with judged(h100.spec(), judge) as stage:
        await shown(stage, "gpu1", "unjudged", "XID_63,XID_64")
        await shown(stage, "gpu1", "unanswered", "nvmlDeviceGetRemappedRows_v2 NO_PERMISSION")
        readings = stage.health.readings["gpu1"]
        assert (readings["unjudged.XID_63"], readings["unjudged.XID_64"]) == (1.0, 1.0)
        assert judge.view("gpu1").verdict is Verdict.ALLOW
        h100.node.release()
        await shown(stage, "gpu1", "unanswered", "")


@pytest.mark.parametrize("answer", [1, 9, 18])
@pytest.mark.parametrize(
    "function", ["nvmlDeviceGetPersistenceMode", "field:82", "nvmlDeviceGetHandleByIndex_v2"]
)
async def test_one_gpu_that_answers_as_if_there_were_no_driver_takes_no_other(
    h100: GpuNode, judge: Judge, function: str, answer: int
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.node.answer(answer, "gpu2", function)
        await stage.polled("gpu1", times=70)
        assert stage.health.restarts == 0
        views = {f"gpu{number}": judge.view(f"gpu{number}") for number in (0, 1, 3)}
        assert {view.verdict for view in views.values()} == {Verdict.ALLOW}
        assert all(view.observed for view in views.values())


async def test_a_driver_that_is_gone_is_so_for_all(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.driver.unload()
        await stage.signal("NV_DRIVER_NOT_LOADED", "node", "occur")


def test_what_is_refused_is_asked_again_after_a_while_and_ever_more_seldom(opened: Opened) -> None:
    clock = Clock()
    calls = Calls(opened.handle, now_s=clock)
    fields = FieldValues(calls, [MEMORY_TEMPERATURE])
    opened.node.answer(NOT_SUPPORTED, "gpu0", "field:82")

    def asked_after(pause_s: float) -> int:
        clock.now_s += pause_s
        before = opened.node.calls("field:82", "gpu0")
        fields.read()
        return opened.node.calls("field:82", "gpu0") - before

    assert asked_after(0) == 1
    for pause_s in (*AGAIN_S, AGAIN_S[-1]):
        assert [asked_after(pause_s - 1), asked_after(1)] == [0, 1]
    opened.node.release()
    clock.now_s += AGAIN_S[-1]
    assert MEMORY_TEMPERATURE in fields.read()


def test_after_news_of_the_gpu_it_is_asked_at_the_next_poll_but_not_at_each(opened: Opened) -> None:
    clock = Clock()
    calls = Calls(opened.handle, now_s=clock)
    opened.node.answer(NOT_SUPPORTED, "gpu0", "nvmlDeviceGetMarginTemperature")

    def poll() -> int:
        calls.turn()
        before = opened.node.calls("nvmlDeviceGetMarginTemperature", "gpu0")
        calls.ask(pynvml.nvmlDeviceGetMarginTemperature)
        return opened.node.calls("nvmlDeviceGetMarginTemperature", "gpu0") - before

    assert [poll(), poll()] == [1, 0]
    calls.ask_again()
    assert [poll(), poll()] == [1, 0]
    calls.ask_again()
    assert poll() == 0
    clock.now_s += AGAIN_AFTER_NEWS_S
    calls.ask_again()
    assert poll() == 1


def test_an_older_version_is_asked_where_the_newer_fails(opened: Opened) -> None:
    """nvitop issue 30: the second version of the call for memory answers UNKNOWN in WSL."""
    calls = Calls(opened.handle)
    opened.node.answer(pynvml.NVML_ERROR_UNKNOWN, "gpu0", "nvmlDeviceGetMemoryInfo_v2")
    memory = calls.newest(
        (lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2), lambda value: value),
        (pynvml.nvmlDeviceGetMemoryInfo, lambda value: value.total),
    )
    assert memory == 85_520_809_984
    assert (calls.failed, calls.unanswered) == ([], {})


def test_a_field_that_the_library_leaves_as_it_came_is_no_value(opened: Opened) -> None:
    calls = Calls(opened.handle)
    opened.node.answer(-1, "gpu0", "field:82")
    assert FieldValues(calls, [MEMORY_TEMPERATURE]).read() == {}
    assert calls.failed == ["field 82: UNKNOWN"]


async def test_a_driver_that_leaves_the_recovery_action_as_it_came_has_not_told_it(
    h100: GpuNode, judge: Judge
) -> None:
    h100.node.answer(-1, "gpu1", "field:230")
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.raise_xid("gpu1", 154)
        await stage.signal("XID_154", "gpu1", "once")
        told = {
            given.device: given.attributes.get("recovery_action")
            for given in stage.inputs
            if isinstance(given, DeviceSeen)
        }
        assert told == {"gpu0": "told", "gpu1": None, "gpu2": "told", "gpu3": "told"}


async def test_processes_that_were_listed_and_are_refused_now_are_unknown(
    h100: GpuNode, judge: Judge
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: judge.view("gpu1").holders == ())
        h100.node.answer(NOT_SUPPORTED, "gpu1", "nvmlDeviceGetComputeRunningProcesses*")
        unknown = ProcessesListed(device="gpu1", holders=(), known=False)
        await stage.until(lambda: unknown in stage.inputs)


def test_a_later_version_of_what_is_kept_is_read_as_far_as_it_is_known() -> None:
    kept = GpuBaseline()
    kept.answered(("field", 82, 0))
    kept.judge({"XID_63"})
    said = kept.news()
    assert said is not None
    later = said.content[:-1] + ',"colour":"red"}'
    again = GpuBaseline(type(said)(number=2, content=later))
    assert (again.number, again.was_answered(("field", 82, 0)), again.was_judged("XID_63")) == (2, True, True)
    broken = GpuBaseline(type(said)(number=2, content="{"), ["XID_63"])
    assert (broken.was_judged("XID_63"), broken.is_unseen("XID_63")) == (False, True)


def test_of_more_than_can_be_kept_the_links_are_kept() -> None:
    kept = GpuBaseline()
    kept.links.up.update(range(18))
    kept.judge({"XID_63"})
    for number in range(MAX_BASELINE):
        kept.answered(("nvmlDeviceGetMemoryInfo", number))
    said = kept.news()
    assert said is not None
    assert len(said.content) <= MAX_BASELINE
    again = GpuBaseline(said)
    assert (len(again.links.up), again.was_judged("XID_63")) == (18, True)


def test_a_reader_that_is_refused_finds_nothing_and_says_so(opened: Opened) -> None:
    calls = Calls(opened.handle)
    opened.node.answer(NOT_SUPPORTED, "gpu0", "nvmlDeviceGetSramEccErrorStatus")
    memory = MemoryState(calls)
    assert memory.flags[0][1](None) is None  # type: ignore[arg-type]


def test_events_that_were_refused_are_listened_to_again(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "AGAIN_NS", 0)
    monkeypatch.setattr(events, "REFUSED_AGAIN_NS", 0)
    owner = EventOwner(device="gpu0", known_by_state=lambda _: False, is_divided=lambda: False)
    heard: list[Signal] = []
    listening = GpuEvents(owner, opened.handle, heard.append, lambda _: None, Doubles())
    opened.node.answer(NOT_SUPPORTED, "gpu0", "nvmlDeviceRegisterEvents", times=1)
    listening.heal()
    assert (listening.supported, listening.refusal) == (False, NOT_SUPPORTED)

    def is_listening() -> bool:
        listening.heal()
        return listening.supported

    wait_until(is_listening)
    assert listening.refusal is None
    opened.gpus.raise_xid("gpu0", 79)
    wait_until(lambda: heard)
    assert [(signal.device, signal.code) for signal in heard] == [("gpu0", "XID_79")]
    listening.end()


async def test_events_that_may_not_be_listened_to_are_shown(h100: GpuNode, judge: Judge) -> None:
    h100.node.answer(NO_PERMISSION, "gpu1", "nvmlDeviceRegisterEvents")
    async with judged(h100.spec(), judge) as stage:
        await shown(stage, "gpu1", "unanswered", "nvmlDeviceRegisterEvents NO_PERMISSION")
