"""When processes on a chip look hung: by samples as values, and by the real driver on an emulated chip.

Which processes hold an NPU, and what is made of lists that fail or make no sense.

Whom the vendor's library would kill: the lines of its list that it takes, and whom they mean.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.core.model import ProcessesListed
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.drivers.ascend.driver import AscendDriver
from nodeagent.drivers.ascend.users import (
    SUSPECTED_HANG,
    ChipHangWatch,
    HangRule,
    HangSample,
    killed_at_reset,
    sample_of,
)
from nodeagent.emulator.node import EmulatedNode
from nodeagent.wire import DeviceUser
from tests.drivers.ascend.judged import Judged, judged
from tests.drivers.ascend.recorder import Recorder
from tests.drivers.worker_specs import ascend_spec

MINUTE_NS = 60_000_000_000
RULE = HangRule()
STILL = HangSample(
    processes=frozenset({(4711, 12345)}),
    aicore_ratio=0.0,
    memory_ratio=0.8,
    packets=1000,
    cpu_s=90.0,
)
AICORE, HBM = 2, 6
RECEIVED, SENT = 30, 33


def watched(*samples: HangSample, rule: HangRule = RULE) -> ChipHangWatch:
    """One sample a minute."""
    watch = ChipHangWatch(rule)
    for minute, sample in enumerate(samples):
        assert watch.due(minute * MINUTE_NS)
        watch.see(sample, minute * MINUTE_NS)
    return watch


def test_five_idle_minutes_with_processes_are_suspicious_and_four_are_not() -> None:
    assert not watched(*[STILL] * 5).suspected
    assert watched(*[STILL] * 6).suspected


def test_a_sample_is_due_once_a_minute() -> None:
    watch = watched(STILL)
    assert [watch.due(at_ns) for at_ns in (1, MINUTE_NS - 1, MINUTE_NS)] == [False, False, True]


@pytest.mark.parametrize(
    "alive",
    [
        pytest.param(replace(STILL, processes=frozenset()), id="free"),
        pytest.param(replace(STILL, processes=frozenset({(4711, 99)})), id="another process of that id"),
        pytest.param(replace(STILL, aicore_ratio=0.05), id="it computes"),
        pytest.param(replace(STILL, memory_ratio=0.81), id="it takes memory"),
        pytest.param(replace(STILL, packets=1100), id="it talks"),
        pytest.param(replace(STILL, cpu_s=95.0), id="its host side computes"),
        pytest.param(replace(STILL, packets=1100, cpu_s=None), id="it talks, and not all is known"),
    ],
)
def test_any_sign_of_life_ends_it_and_counting_begins_anew(alive: HangSample) -> None:
    assert not watched(*[STILL] * 6, alive).suspected
    assert not watched(*[STILL] * 5, alive, *[alive] * 4).suspected


@pytest.mark.parametrize(
    "nearly_still",
    [
        pytest.param(replace(STILL, aicore_ratio=0.049), id="computes a little"),
        pytest.param(replace(STILL, memory_ratio=0.7), id="gives memory back"),
        pytest.param(replace(STILL, packets=1099), id="talks a little"),
        pytest.param(replace(STILL, cpu_s=94.99), id="its host side computes a little"),
    ],
)
def test_what_stays_below_the_bounds_is_no_sign_of_life(nearly_still: HangSample) -> None:
    assert watched(*[STILL] * 5, nearly_still).suspected


@pytest.mark.parametrize("unread", ["processes", "aicore_ratio", "memory_ratio", "packets", "cpu_s"])
def test_what_cannot_be_read_is_unknown_and_does_not_look_idle(unread: str) -> None:
    unknown = replace(STILL, **{unread: None})
    assert not watched(*[unknown] * 20).suspected
    assert not watched(*[STILL] * 5, unknown, STILL).suspected


@pytest.mark.parametrize("unread", ["processes", "aicore_ratio", "memory_ratio", "packets", "cpu_s"])
def test_what_cannot_be_read_for_a_while_ends_no_suspicion(unread: str) -> None:
    unknown = replace(STILL, **{unread: None})
    assert watched(*[STILL] * 6, unknown, unknown, STILL).suspected
    assert not watched(*[STILL] * 6, unknown, STILL, replace(STILL, aicore_ratio=0.9)).suspected


def test_a_counter_that_went_back_says_nothing() -> None:
    wrapped = replace(STILL, packets=3)
    assert not watched(*[STILL] * 5, wrapped).suspected
    assert not watched(*[STILL] * 5, *[wrapped] * 5).suspected
    assert watched(*[STILL] * 5, *[wrapped] * 6).suspected


def test_a_chip_that_was_away_begins_anew() -> None:
    watch = watched(*[STILL] * 6)
    watch.forget()
    assert (watch.suspected, watch.due(0)) == (False, True)


def test_a_sample_holds_what_a_poll_has_read() -> None:
    readings = {
        "utilization_ratio.aicore": 0.01,
        "utilization_ratio.memory": 0.5,
        "link_received_packets_total.roce": 40.0,
        "link_sent_packets_total.roce": 2.0,
    }
    holder = DeviceUser(pid=7, start_time=70, command="train")
    assert sample_of(readings, (holder,), 1.5) == HangSample(
        processes=frozenset({(7, 70)}), aicore_ratio=0.01, memory_ratio=0.5, packets=42.0, cpu_s=1.5
    )
    del readings["link_sent_packets_total.roce"]
    assert sample_of(readings, None, None) == HangSample(
        processes=None, aicore_ratio=0.01, memory_ratio=0.5, packets=None, cpu_s=None
    )


@pytest.fixture
def driver(node: EmulatedNode, tmp_path: Path) -> Iterator[AscendDriver]:
    """It takes a sample at each poll."""
    driver = AscendDriver(
        library=str(node.dcmi),
        sysfs=tmp_path,
        procfs=Path("/proc"),
        skip=frozenset(),
        emit=Recorder(),
        hang_rule=HangRule(period_ns=0, cpu_s=3600.0),
    )
    driver.open()
    driver.devices()
    yield driver
    driver.close()


def codes(driver: AscendDriver, device: str) -> list[str]:
    return [active.code for active in driver.poll(device).active or ()]


def test_a_job_that_does_nothing_is_told_by_the_chips_poll(node: EmulatedNode, driver: AscendDriver) -> None:
    node.set("npu3", "utilization_percent", 0, AICORE)
    node.hold("npu3", os.getpid())
    assert [codes(driver, "npu3") for _ in range(6)] == [[]] * 5 + [[SUSPECTED_HANG]]
    assert driver.poll("npu3").complete
    assert codes(driver, "npu4") == []

    node.set("npu3", "utilization_percent", 60, AICORE)
    assert codes(driver, "npu3") == []


def test_a_job_that_is_profiled_is_not_suspected(node: EmulatedNode, driver: AscendDriver) -> None:
    node.set("npu3", "utilization_percent", 97, AICORE)
    node.set("npu3", "profiling", 1)
    node.hold("npu3", os.getpid())
    assert [codes(driver, "npu3") for _ in range(10)] == [[]] * 10


def test_a_chip_without_a_network_of_its_own_is_never_suspected(
    node: EmulatedNode, driver: AscendDriver
) -> None:
    node.set_supported("dcmi_get_netdev_pkt_stats_info", False)
    node.set("npu3", "utilization_percent", 0, AICORE)
    node.hold("npu3", os.getpid())
    assert [codes(driver, "npu3") for _ in range(10)] == [[]] * 10


def test_packets_count_in_both_directions(node: EmulatedNode, driver: AscendDriver) -> None:
    node.set("npu3", "network_counters", 500, RECEIVED)
    node.set("npu3", "network_counters", 70, SENT)
    readings = driver.poll("npu3").readings
    assert readings["link_received_packets_total.roce"] == 500
    assert readings["link_sent_packets_total.roce"] == 70


PROCESSES = "dcmi_get_device_resource_info"


@pytest.fixture
def spec(node: EmulatedNode) -> WorkerSpec:
    return ascend_spec(node.dcmi, node.sysfs, poll_interval_s=0.05)


async def test_the_processes_on_a_chip_are_its_holders(node: EmulatedNode, spec: WorkerSpec) -> None:
    node.hold("npu3", os.getpid())
    async with judged(spec) as stage:
        held = await stage.until(lambda: holders_of(stage, "npu3"), "holders")
        assert [holder.pid for holder in held[-1].holders] == [os.getpid()]
        assert held[-1].holders[0].start_time > 0
        assert holders_of(stage, "npu4")[-1].holders == ()
        node.let_go("npu3")
        await stage.until(lambda: not holders_of(stage, "npu3")[-1].holders, "a free chip")


async def test_a_list_of_processes_that_cannot_be_says_nothing_of_holders(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    node.set("npu3", "process_count_lie", 10_000)
    node.hold("npu4", -1)
    async with judged(spec) as stage:
        await stage.polled("npu5", 1)
        assert holders_of(stage, "npu3") == []
        assert holders_of(stage, "npu4") == []
        assert holders_of(stage, "npu5")[-1].holders == ()


async def test_a_process_that_cannot_be_seen_holds_the_chip_all_the_same(
    node: EmulatedNode, tmp_path: Path
) -> None:
    config = {"library": str(node.dcmi), "sysfs": str(tmp_path), "procfs": str(tmp_path / "proc")}
    spec = ascend_spec(node.dcmi, tmp_path, config=config)
    node.hold("npu3", 4711)
    async with judged(spec) as stage:
        held = await stage.until(lambda: holders_of(stage, "npu3"), "holders")
        assert [(one.pid, one.start_time, one.command) for one in held[-1].holders] == [(4711, 0, "")]


@pytest.mark.parametrize("count", [33, 64])
async def test_a_chip_may_be_held_by_as_many_processes_as_the_library_tells(
    node: EmulatedNode, spec: WorkerSpec, count: int
) -> None:
    for process in range(count):
        node.hold("npu3", 10_000_000 + process)
    async with judged(spec) as stage:
        await stage.polled("npu3", 1)
        assert [len(each.holders) for each in holders_of(stage, "npu3")] == [count]


async def test_a_list_that_fails_because_a_process_has_just_ended_is_asked_for_again(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    node.hold("npu3", os.getpid())
    async with judged(spec) as stage:
        await stage.polled("npu3", 1)
        node.end_process("npu3", os.getpid())
        await stage.until(lambda: not holders_of(stage, "npu3")[-1].holders, "a free chip")
        assert [each.known for each in holders_of(stage, "npu3")] == [True, True]


async def test_holders_are_unknown_while_the_list_fails(node: EmulatedNode, spec: WorkerSpec) -> None:
    node.hold("npu3", os.getpid())
    async with judged(spec) as stage:
        await stage.polled("npu3", 1)
        node.answer(-8005, "npu3", PROCESSES)
        await stage.until(lambda: not holders_of(stage, "npu3")[-1].known, "unknown holders")


def holders_of(stage: Judged, device: str) -> list[ProcessesListed]:
    return [one for one in stage.inputs if isinstance(one, ProcessesListed) and one.device == device]


KEY = "AllowKilledWhenResetNPU"


@pytest.fixture
def procfs(tmp_path: Path) -> Path:
    """With an exporter, 7, and a process whose name has a space, 8."""
    for pid, name in ((7, "exporter"), (8, "my tool")):
        (tmp_path / "proc" / str(pid)).mkdir(parents=True)
        (tmp_path / "proc" / str(pid) / "status").write_text(f"Name:\t{name}\nPid:\t{pid}\n")
    return tmp_path / "proc"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{KEY}:exporter:7\n", {7: "exporter"}),
        (f" {KEY} : exporter : 7 ", {7: "exporter"}),
        (f"{KEY}:my:8\n", {8: "my"}),
        (f"{KEY}:another:7\n", {}),
        (f"{KEY}:exporter:9\n", {}),
        (f"{KEY}:exporter:-7\n{KEY}:exporter\n{KEY}:exporter:7:1\nOther:exporter:7\n", {}),
        ("\n" * 9 + f"{KEY}:exporter:7\n", {7: "exporter"}),
        ("\n" * 10 + f"{KEY}:exporter:7\n", {}),
    ],
)
def test_a_line_means_a_process_that_runs_under_that_name(
    procfs: Path, tmp_path: Path, text: str, found: dict[int, str]
) -> None:
    (tmp_path / "list").write_text(text)
    assert killed_at_reset(procfs, tmp_path / "list") == found


def test_without_a_list_nobody_is_killed(procfs: Path, tmp_path: Path) -> None:
    assert killed_at_reset(procfs, tmp_path / "list") == {}
