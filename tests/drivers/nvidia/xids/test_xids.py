"""An Xid is that of the GPU which its event names, and of an instance only where the GPU is divided.

Xids by NVML: each as its row says, and one fault with what the kernel log and the state say of it.
"""

import pynvml
import pytest

from nodeagent.core.model import NODE, Assertion, DeviceSeen, Handling, Signal
from nodeagent.drivers.nvidia.events import WINDOW_NS, Doubles, code_of
from nodeagent.emulator.gpus import Instance, recovery_line, xid_line
from tests.daemon.staged import Staged, staged
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

EVERY_SET, WHO_LOOKS_FIRST = 1, 2
NOTHING_SAID = Instance(gpu=0, compute=0)
"""What a library leaves that does not set the ids (nvmlEventData_t in nvml.h promises all ones)."""


@pytest.mark.parametrize("reach", [EVERY_SET, WHO_LOOKS_FIRST], ids=["every set", "who looks first"])
async def test_an_event_that_comes_by_another_gpus_set_is_that_of_its_own_gpu_once(
    h100: GpuNode, judge: Judge, reach: int
) -> None:
    h100.node.set_node("gpu_events_to", reach)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        for gpu in ("gpu3", "gpu1"):
            h100.gpus.raise_xid(gpu, 79)
            await stage.signal("XID_79", gpu, "once")
        await stage.polled("gpu1", times=12)
        told = [
            given.device for given in stage.inputs if isinstance(given, Signal) and given.code == "XID_79"
        ]
        assert told == ["gpu3", "gpu1"]


async def test_on_a_gpu_without_mig_an_xid_is_the_gpus(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.raise_xid("gpu2", 94, instance=NOTHING_SAID)
        signal = await stage.signal("XID_94", "gpu2", "once")
        assert signal.evidence == {"xid": "94"}
        assert judge.view("gpu2").handling is Handling.RESTART_JOB


async def test_a_gpu_that_was_divided_a_moment_ago_is_so_for_its_events(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.partition("gpu2", [3, 3])
        h100.gpus.raise_xid("gpu2", 31, instance=Instance(gpu=1))
        await stage.signal("XID_31", "gpu2/gi1", "once")


async def test_an_event_of_a_device_that_nobody_knows_is_refused(h100: GpuNode, judge: Judge) -> None:
    h100.node.set_node("gpu_events_to", WHO_LOOKS_FIRST)
    h100.node.answer(2, "gpu3", "nvmlDeviceGetUUID")
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        refused = stage.health.readings["*"]["refused_values_total"]
        for _ in range(20):
            h100.gpus.raise_xid("gpu3", 79)
        await stage.until(lambda: stage.health.readings["*"]["refused_values_total"] > refused)


def test_what_comes_by_two_sets_within_a_second_is_one_event() -> None:
    doubles, key = Doubles(), ("gpu1", "XID_31")
    assert [doubles.has(key, by, at_ns) for by, at_ns in (("gpu1", 5), ("gpu0", 6), ("gpu1", 7))] == [
        False,
        True,
        False,
    ]
    assert not doubles.has(key, "gpu0", 7 + WINDOW_NS)
    assert not doubles.has(("gpu1", "XID_13"), "gpu0", 8)


ALL = range(1, 177)
NVLINK = range(144, 151)
NOTICE = 174
"""Told and opened by nobody: the driver has ended a process."""


def by_nvml(xid: int, device: str = "gpu0") -> Signal:
    return Signal(source="nvidia", device=device, code=code_of(xid), assertion=Assertion.ONCE)


async def test_every_xid_arrives_with_the_number_that_the_driver_gave_it(h100: GpuNode) -> None:
    async with judged(h100.spec(), Judge()) as stage:
        await stage.back()
        for xid in ALL:
            h100.gpus.raise_xid("gpu2", xid)
        await stage.signal("XID_176", "gpu2", "once")
        codes = [given.code for given in stage.inputs if isinstance(given, Signal) and given.device == "gpu2"]
        assert [code for code in codes if code.startswith("XID_")] == [code_of(n) for n in ALL if n != 154]


async def test_a_gpu_that_does_not_tell_its_recovery_action_tells_the_xid_of_it(h100: GpuNode) -> None:
    h100.gpus.driver.make_older("520")
    async with judged(h100.spec(), Judge()) as stage:
        await stage.back()
        h100.gpus.raise_xid("gpu2", 154)
        await stage.signal("XID_154", "gpu2", "once")


def test_every_xid_has_the_level_of_its_row(judge: Judge) -> None:
    rows = {xid: judge.catalog.rows[f"XID_{xid}"] for xid in ALL if xid not in (*NVLINK, NOTICE)}
    for xid in rows:
        judge.take(by_nvml(xid, f"gpu{xid}"))
    assert {xid: judge.open(f"gpu{xid}") for xid in rows} == {
        xid: {row.code: row.level.value} for xid, row in rows.items()
    }


def test_an_nvlink_xid_that_does_not_say_whether_it_was_fatal_opens_nothing(judge: Judge) -> None:
    for xid in NVLINK:
        judge.take(by_nvml(xid, f"gpu{xid}"))
    assert judge.emitted("raised") == []
    assert judge.emitted("notice") == [("notice", NODE, f"XID_{xid}.unspecified") for xid in NVLINK]


async def test_the_same_xid_by_both_sources_is_one_fault_on_each_of_eight_gpus(
    tmp_path_factory: pytest.TempPathFactory, judge: Judge
) -> None:
    bench = GpuNode(tmp_path_factory.mktemp("eight"), "8xH100")
    with bench.node:
        async with judged(bench.spec(), judge) as stage:
            await stage.back()
            for number in range(8):
                gpu, line = f"gpu{number}", xid_line(bench.gpus.pci(f"gpu{number}"), 79)
                if number % 2:
                    judge.kernel_line(line)
                bench.gpus.raise_xid(gpu, 79)
                await stage.signal("XID_79", gpu, "once")
                if not number % 2:
                    judge.skip(170)
                    judge.kernel_line(line)
            raised = judge.emitted("raised")
            assert raised == [("raised", f"gpu{number}", "XID_79") for number in range(8)]


async def test_an_xid_by_both_sources_counts_once_towards_repetition(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        line = xid_line(h100.gpus.pci("gpu0"), 119)
        for _ in range(2):
            judge.take(by_nvml(119))
            judge.skip(2)
            judge.kernel_line(line)
            judge.skip(600)
        assert judge.emitted("promoted") == []
        judge.kernel_line(line)
        judge.skip(31)
        assert judge.emitted("promoted") == [("promoted", "gpu0", "XID_119")]


async def test_an_application_fault_by_both_sources_counts_once_a_time(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        line = xid_line(h100.gpus.pci("gpu0"), 31, process_id=4711, process_name="python3")
        handlings = []
        for _ in range(3):
            judge.kernel_line(line)
            judge.skip(1)
            judge.take(by_nvml(31))
            handlings.append(judge.view("gpu0").handling)
            judge.skip(240)
        assert handlings == [Handling.RESTART_JOB, Handling.RESTART_JOB, Handling.RESCHEDULE]


async def test_a_recovery_action_goes_with_the_xid_that_caused_it(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.raise_xid("gpu1", 95)
        await stage.signal("XID_95", "gpu1", "once")
        h100.gpus.set_recovery_action("gpu1", 1)
        judge.kernel_line(recovery_line(h100.gpus.pci("gpu1"), 0, 1))
        await stage.polled("gpu1", times=3)
        assert judge.open("gpu1") == {"XID_95": "RestartNPU"}
        assert judge.emitted("raised") == [("raised", "gpu1", "XID_95")]


async def test_a_recovery_action_that_asks_for_more_than_its_xid_sets_the_handling(
    h100: GpuNode, judge: Judge
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.raise_xid("gpu1", 13)
        await stage.signal("XID_13", "gpu1", "once")
        assert judge.view("gpu1").handling is Handling.RESTART_JOB
        h100.gpus.set_recovery_action("gpu1", 1)
        await stage.until(lambda: "XID_154.1" in judge.open("gpu1"))
        assert judge.view("gpu1").handling is Handling.RESCHEDULE
        assert [code for _, _, code in judge.emitted("raised")] == ["XID_13", "XID_154.1"]


async def test_a_recorded_remap_ends_when_its_row_no_longer_waits(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.remap("gpu1", uncorrected=1, pending=True)
        judge.kernel_line(xid_line(h100.gpus.pci("gpu1"), 63))
        h100.gpus.raise_xid("gpu1", 63)
        await stage.signal("XID_63", "gpu1", "once")
        await stage.polled("gpu1", times=2)
        h100.gpus.remap("gpu1", pending=False)
        await stage.until(lambda: judge.open("gpu1") == {})
        assert judge.emitted("raised", "cleared") == [
            ("raised", "gpu1", "XID_63"),
            ("cleared", "gpu1", "XID_63"),
        ]


async def test_an_nvlink_xid_explains_the_link_that_is_down(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.raise_xid("gpu1", 74)
        await stage.signal("XID_74", "gpu1", "once")
        h100.gpus.set_link("gpu1", 3, active=False)
        await stage.polled("gpu1", times=4)
        assert judge.open("gpu1") == {"XID_74": "RestartNPU"}


def test_channels_removed_after_another_xid_need_nothing_though_nvml_does_not_say_so(judge: Judge) -> None:
    """In either order: by NVML the number alone, by the kernel's line what it follows."""
    line = xid_line("0000:1b:00", 45, "Ch 00000008, errorString caused by previous Xid 31")
    judge.kernel_line(line)
    device = judge.engine.view().conditions[0].device_id.removeprefix("slot:")
    judge.take(by_nvml(45, device))
    assert judge.open(device) == {"XID_45.follows": "NotHandleFault"}


async def test_a_storm_of_one_xid_is_told_at_once_and_then_counted(h100: GpuNode) -> None:
    async with judged(h100.spec(), Judge()) as stage:
        await stage.back()
        for _ in range(50):
            h100.gpus.raise_xid("gpu0", 31)
        await stage.until(lambda: sum(counts(stage)) == 50)
        # One a second at most, however long the fifty take.
        assert (len(counts(stage)) < 20, counts(stage)[0]) == (True, 1)


async def test_what_was_counted_is_told_though_the_gpu_is_lost_before_its_second_is_over(
    h100: GpuNode,
) -> None:
    async with staged(h100.spec()) as stage:
        await stage.back()
        for _ in range(5):
            h100.gpus.raise_xid("gpu0", 31)
        h100.gpus.lose("gpu0")
        await stage.until(lambda: sum(counts(stage)) == 5)


def counts(stage: Staged) -> list[int]:
    """Of each signal of the Xid its count."""
    return [given.count for given in stage.inputs if isinstance(given, Signal) and given.code == "XID_31"]


async def test_a_gpu_that_tells_no_events_says_so_for_then_the_kernel_log_has_the_word(h100: GpuNode) -> None:
    h100.node.answer(pynvml.NVML_ERROR_NOT_SUPPORTED, "gpu1", "nvmlDeviceRegisterEvents")
    async with judged(h100.spec(), Judge()) as stage:
        await stage.back()
        seen = await stage.until(
            lambda: [
                each for each in stage.inputs if isinstance(each, DeviceSeen) and "events" in each.attributes
            ]
        )
        assert {(each.device, each.attributes["events"]) for each in seen} == {("gpu1", "none")}
