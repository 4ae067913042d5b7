"""What NVML says of a GPU as an operator sees it: through worker and supervisor, judged by the tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.catalog.catalog import family_of
from nodeagent.core.model import Assertion, DeviceSeen, Kind, Signal, Verdict
from nodeagent.daemon.sources.telemetry_edges import RuleReadings
from nodeagent.daemon.sources.translate import node_fault
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

BringAbout = Callable[[GpuNode, str], Any]

HOPPER: list[tuple[str, BringAbout, str]] = [
    ("XID_63", lambda b, gpu: b.gpus.remap(gpu, uncorrected=1, pending=True), "FreeRestartNPU"),
    ("XID_64", lambda b, gpu: b.gpus.fail_remap(gpu), "RestartNPU"),
    ("XID_154.2", lambda b, gpu: b.gpus.set_recovery_action(gpu, 2, deliver=False), "SeparateNPU"),
    ("XID_154.5", lambda b, gpu: b.gpus.set_recovery_action(gpu, 5, deliver=False), "PreSeparateNPU"),
    ("NV_SRAM_THRESHOLD", lambda b, gpu: b.node.set(gpu, "gpu_sram_threshold_exceeded", 1), "PreSeparateNPU"),
    ("NV_FABRIC_FAILED", lambda b, gpu: b.gpus.set_fabric(gpu, 3, status=999), "PreSeparateNPU"),
    ("NV_GPU_LOST", lambda b, gpu: b.gpus.lose(gpu), "SeparateNPU"),
    ("NV_GPU_RESET_REQUIRED", lambda b, gpu: b.gpus.require_reset(gpu), "RestartNPU"),
]
BLACKWELL: list[tuple[str, BringAbout, str]] = [
    (
        "NV_CHANNEL_REPAIR_PENDING",
        lambda b, gpu: b.node.set(gpu, "gpu_channel_repair_pending", 1),
        "FreeRestartNPU",
    ),
    ("NV_TPC_REPAIR_PENDING", lambda b, gpu: b.node.set(gpu, "gpu_tpc_repair_pending", 1), "FreeRestartNPU"),
    ("NV_BANK_REMAP_PENDING", lambda b, gpu: b.node.set(gpu, "gpu_banks_pending", 1), "FreeRestartNPU"),
    ("NV_MEMORY_UNREPAIRABLE", lambda b, gpu: b.node.set(gpu, "gpu_unrepairable_memory", 1), "SeparateNPU"),
    ("NV_FABRIC_ROUTE_UNHEALTHY", lambda b, gpu: set_mask(b, gpu, 4, 1), "PreSeparateNPU"),
    ("NV_FABRIC_DEGRADED_BANDWIDTH", lambda b, gpu: set_mask(b, gpu, 0, 1), "PreSeparateNPU"),
    ("NV_FABRIC_MISCONFIGURED", lambda b, gpu: set_mask(b, gpu, 8, 5), "PreSeparateNPU"),
    ("NV_FABRIC_MANAGER_DISCONNECTED", lambda b, gpu: set_mask(b, gpu, 14, 2), "SubHealthFault"),
]


def set_mask(bench: GpuNode, gpu: str, shift: int, value: int) -> None:
    width = 0xF if shift == 8 else 0x3
    mask = int(bench.gpus.chip(gpu).gpu_fabric_health_mask)
    bench.node.set(gpu, "gpu_fabric_health_mask", mask & ~(width << shift) | value << shift)


@pytest.mark.parametrize(("product", "faults"), [("8xH100", HOPPER), ("8xB200", BLACKWELL)])
async def test_each_state_of_a_gpu_is_its_own_fault(
    tmp_path: Path, judge: Judge, product: str, faults: list[tuple[str, BringAbout, str]]
) -> None:
    bench = GpuNode(tmp_path, product)
    with bench.node:
        async with judged(bench.spec(), judge) as stage:
            await stage.back()
            assert [judge.open(f"gpu{number}") for number in range(8)] == [{}] * 8
            for number, (_, bring_about, _) in enumerate(faults):
                bring_about(bench, f"gpu{number}")
            wanted = {f"gpu{number}": {code: level} for number, (code, _, level) in enumerate(faults)}
            for gpu, fault in wanted.items():
                await stage.until(lambda gpu=gpu, fault=fault: judge.open(gpu) == fault, str(fault))  # type: ignore[misc]
            assert {gpu: judge.open(gpu) for gpu in wanted} == wanted


async def test_a_state_that_was_there_before_the_start_is_found(h100: GpuNode, judge: Judge) -> None:
    h100.gpus.set_recovery_action("gpu1", 1, deliver=False)
    h100.gpus.fail_remap("gpu2")
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        assert judge.open("gpu1") == {"XID_154.1": "RestartNPU"}
        assert judge.open("gpu2") == {"XID_64": "RestartNPU"}


async def test_a_failed_remap_goes_before_a_pending_one(h100: GpuNode, judge: Judge) -> None:
    h100.gpus.remap("gpu0", uncorrected=1, pending=True)
    h100.gpus.fail_remap("gpu0")
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu0", times=3)
        assert judge.open("gpu0") == {"XID_64": "RestartNPU"}


async def test_a_state_that_is_over_ends_its_fault(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.set_recovery_action("gpu1", 1, deliver=False)
        h100.gpus.remap("gpu1", uncorrected=1, pending=True)
        await stage.until(
            lambda: judge.open("gpu1") == {"XID_154.1": "RestartNPU", "XID_63": "FreeRestartNPU"}
        )
        h100.gpus.set_recovery_action("gpu1", 0, deliver=False)
        h100.gpus.remap("gpu1", pending=False)
        await stage.until(lambda: judge.open("gpu1") == {})
        assert judge.view("gpu1").verdict is Verdict.ALLOW


async def test_a_lost_gpu_is_isolated_and_back_when_it_answers(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.lose("gpu3")
        await stage.until(lambda: judge.open("gpu3") == {"NV_GPU_LOST": "SeparateNPU"})
        assert judge.view("gpu3").verdict is Verdict.ISOLATE
        assert judge.view("gpu2").verdict is Verdict.ALLOW
        h100.node.return_("gpu3")
        await stage.until(lambda: judge.open("gpu3") == {})
        assert judge.view("gpu3").verdict is Verdict.ALLOW


async def test_a_gpu_that_is_not_ready_for_long_takes_no_new_jobs(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.answer_always("gpu0", 27)
        await stage.until(lambda: judge.open("gpu0") == {"NV_NOT_READY": "NotHandleFault"})
        assert judge.view("gpu0").verdict is Verdict.ALLOW
        judge.skip(61)
        assert judge.open("gpu0") == {"NV_NOT_READY": "PreSeparateNPU"}


async def test_a_fabric_that_does_not_get_ready_takes_no_new_jobs(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.set_fabric("gpu0", 2)
        await stage.until(lambda: judge.open("gpu0") == {"NV_FABRIC_NOT_READY": "NotHandleFault"})
        judge.skip(181)
        assert judge.open("gpu0") == {"NV_FABRIC_NOT_READY": "PreSeparateNPU"}


async def test_a_link_that_stays_down_needs_a_reset(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.set_link("gpu1", 7, active=False)
        await stage.until(lambda: judge.open("gpu1") == {"NV_NVLINK_INACTIVE": "SubHealthFault"})
        judge.skip(31)
        assert judge.open("gpu1") == {"NV_NVLINK_INACTIVE": "RestartNPU"}
        assert stage.health.readings["gpu1"]["link_up.7"] == 0.0


async def test_a_link_that_is_down_from_the_start_is_missed_beside_its_peers(
    h100: GpuNode, judge: Judge
) -> None:
    h100.gpus.set_link("gpu1", 7, active=False)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: judge.open("gpu1") == {"NV_NVLINK_INACTIVE": "SubHealthFault"})
        assert judge.open("gpu0") == {}


async def test_a_card_whose_links_lead_nowhere_misses_none(tmp_path: Path, judge: Judge) -> None:
    """Cards in slots have links, all inactive, where no bridge joins them."""
    bench = GpuNode(tmp_path, "2xA100")
    with bench.node:
        for link in range(12):
            bench.gpus.set_link("gpu1", link, active=False)
        bench.node.set("gpu0", "gpu_nvlink_remote_type", 0)
        bench.node.answer(3, function="nvmlDeviceGetNvLinkRemoteDeviceType", device="gpu1")
        async with judged(bench.spec(), judge) as stage:
            await stage.polled("gpu1", times=6)
            assert judge.open("gpu1") == judge.open("gpu0") == {}


async def test_a_gpu_that_does_not_tell_how_many_links_it_has_is_read_completely_all_the_same(
    h100: GpuNode, judge: Judge
) -> None:
    """NVML refuses the numbers of links that it does not have; so only a complete poll ends a fault."""
    h100.node.answer(3, "gpu1", "field:91")
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.require_reset("gpu1")
        await stage.until(lambda: judge.open("gpu1") == {"NV_GPU_RESET_REQUIRED": "RestartNPU"})
        h100.gpus.answer_always("gpu1", 0)
        await stage.until(lambda: judge.open("gpu1") == {})
        assert stage.health.readings["gpu1"]["nvlink_links_up"] == 18.0


async def test_a_fault_of_a_gpu_outlasts_its_being_cut_in_pieces(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.set_recovery_action("gpu1", 4, deliver=False)
        await stage.until(lambda: judge.open("gpu1") != {})
        h100.gpus.partition("gpu1", [3, 3])
        await stage.polled("gpu1", times=4)
        assert judge.open("gpu1") == {"XID_154.4": "FreeRestartNPU"}


async def test_a_gpu_cut_in_pieces_misses_no_links(h100: GpuNode, judge: Judge) -> None:
    h100.gpus.partition("gpu1", [3, 3])
    h100.gpus.set_link("gpu1", 7, active=False)
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu1", times=6)
        assert judge.open("gpu1") == {}
        assert stage.health.readings["gpu1"]["nvlink_links_missing"] == 1.0


async def test_minutes_of_slowdown_are_counted(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.node.set("gpu0", "gpu_clock_reasons", 0x8 | 0x40)
        await stage.until(lambda: stage.health.readings["gpu0"].get("throttle.hw_thermal") == 1.0)
        assert stage.health.readings["gpu0"]["hw_slowdown_minutes_total"] in (1.0, 2.0)
        assert stage.health.readings["gpu1"]["hw_slowdown_minutes_total"] == 0.0


async def test_a_narrow_pcie_link_is_told(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.node.set("gpu0", "gpu_pcie_width", 8)
        await stage.until(lambda: stage.health.readings["gpu0"].get("pcie_lanes_missing") == 8.0)
        judge.skip(61)
        assert judge.open("gpu0") == {"NV_PCIE_WIDTH": "SubHealthFault"}


async def test_the_tables_ask_for_readings_that_there_are(
    h100: GpuNode, judge: Judge, tmp_path: Path
) -> None:
    """On one generation or the other: from Blackwell on, links count other errors."""
    asked = {rule.metric for rule in judge.catalog.threshold if rule.id.startswith("nv-")}
    asked |= {rule.metric for rule in judge.catalog.counter if rule.id.startswith(("nv-", "ecc-"))}
    h100.node.set("gpu0", "gpu_retired_double_count", 0)
    b200 = GpuNode(tmp_path / "b200", "2xB200")
    with b200.node:
        for node in (h100, b200):
            async with judged(node.spec(), Judge()) as stage:
                await stage.back()
                told = stage.health.readings["gpu0"]
                asked -= told.keys() | {family_of(reading) for reading in told}
    assert asked == set()


@pytest.mark.parametrize(
    ("metric", "first", "rises", "every_s", "code"),
    [
        ("thermal_slowdown_minutes_total.hw_thermal", 0, [1] * 6, 95, "NV_SLOWDOWN"),
        ("thermal_slowdown_minutes_total.hw_thermal", 0, [1] * 6, 130, ""),
        ("thermal_slowdown_minutes_total.sw_thermal", 0, [1] * 6, 95, "NV_SLOWDOWN"),
        ("power_brake_minutes_total", 0, [1] * 6, 95, "NV_POWER_BRAKE"),
        ("power_brake_minutes_total", 0, [1] * 6, 130, ""),
        ("ecc_corrected_total", 5_000_000, [400, 400, 400], 3600, "NV_ECC_CORRECTED_RATE"),
        ("ecc_corrected_total", 5_000_000, [400, 400, 400], 50_000, ""),
        ("ecc_corrected_total", 5_000_000, [-400, 400, 400], 3600, ""),
        ("ecc_uncorrected_total", 12, [1, 1, 1], 3600, "NV_ECC_UNCORRECTED_RATE"),
        ("ecc_uncorrected_total", 1000, [0, 0, 0], 3600, ""),
        ("ecc_uncorrected_total", 1000, [-1, 1, 1], 3600, ""),
        ("ecc_volatile_uncorrected_total", 4, [0, 1, 0], 30, "NV_ECC_UNCORRECTED"),
        ("ecc_volatile_uncorrected_total", 4, [0, 0, 0], 30, ""),
        ("ecc_volatile_uncorrected_total", 4, [-4, 0, 0], 30, ""),
        ("pcie_replay_minutes_total", 0, [1, 1, 1], 120, "NV_PCIE_REPLAY_RATE"),
        ("pcie_replay_minutes_total", 0, [1, 1, 1], 400, ""),
        ("pcie_replay_total", 70, [6000, 6000], 900, ""),
    ],
)
def test_counters_are_judged_by_how_fast_they_rise(
    judge: Judge, metric: str, first: int, rises: list[int], every_s: int, code: str
) -> None:
    readings = RuleReadings("nvidia", judge.catalog.threshold, judge.catalog.counter)
    judge.take(DeviceSeen(source="nvidia", device="gpu0", kind=Kind.CHIP, vendor="nvidia", identity="GPU-1"))
    value = first
    for rise in (0, *rises):
        value += rise
        for given in readings.take("gpu0", {metric: float(value)}, judge.now_ns):
            judge.take(given)
        judge.skip(every_s)
    assert [reported for _, _, reported in judge.emitted("raised")] == ([code] if code else [])


def test_each_memory_error_is_told_by_itself_and_what_an_xid_tells_is_no_fault_beside_it(
    judge: Judge,
) -> None:
    readings = RuleReadings("nvidia", judge.catalog.threshold, judge.catalog.counter)
    judge.take(DeviceSeen(source="nvidia", device="gpu0", kind=Kind.CHIP, vendor="nvidia", identity="GPU-1"))

    def count(errors: int) -> None:
        for given in readings.take("gpu0", {"ecc_volatile_uncorrected_total": float(errors)}, judge.now_ns):
            judge.take(given)

    for errors in (0, 1, 2):
        count(errors)
        judge.skip(61)
    reported = [("raised", "gpu0", "NV_ECC_UNCORRECTED"), ("cleared", "gpu0", "NV_ECC_UNCORRECTED")]
    assert judge.emitted("raised", "cleared") == 2 * reported
    judge.take(Signal(source="nvidia", device="gpu0", code="XID_48", assertion=Assertion.ONCE))
    count(3)
    assert judge.open("gpu0") == {"XID_48": "RestartNPU"}


async def test_rows_replaced_up_to_the_limit_are_told(h100: GpuNode, judge: Judge) -> None:
    h100.node.set("gpu0", "gpu_rows_uncorrected", 511)
    h100.node.set("gpu1", "gpu_rows_uncorrected", 512)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: judge.open("gpu1") == {"NV_REMAP_LIMIT": "SubHealthFault"} or None)
        assert judge.view("gpu1").verdict is Verdict.ALLOW
        assert judge.open("gpu0") == {}


async def test_pages_that_are_nearly_all_retired_keep_new_work_away(h100: GpuNode, judge: Judge) -> None:
    for gpu, pages in (("gpu0", 60), ("gpu1", 61)):
        h100.node.set(gpu, "gpu_retired_single_count", 2)
        h100.node.set(gpu, "gpu_retired_double_count", pages)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: judge.open("gpu1") == {"NV_RETIRED_PAGES": "PreSeparateNPU"} or None)
        assert judge.view("gpu1").verdict is Verdict.NO_NEW_JOBS
        assert judge.open("gpu0") == {}


async def test_driver_unloaded_and_loaded_again_is_told_and_needs_no_restart(
    h100: GpuNode, judge: Judge
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        before = len(stage.inputs)
        h100.gpus.driver.unload()
        await stage.signal("NV_DRIVER_NOT_LOADED", "node", "occur")
        assert judge.open("node") == {"NV_DRIVER_NOT_LOADED": "PreSeparateFault"}
        assert judge.view("node").verdict is Verdict.NO_NEW_JOBS
        assert {judge.view(f"gpu{number}").verdict for number in range(4)} == {Verdict.UNKNOWN}
        assert judge.emitted("raised") == [("raised", "node", "NV_DRIVER_NOT_LOADED")]
        h100.gpus.driver.load()
        await stage.back(after=before)
        await stage.until(lambda: judge.open("node") == {})
        assert {judge.view(f"gpu{number}").verdict for number in range(4)} == {Verdict.ALLOW}


async def test_device_files_that_nvml_does_not_find_are_no_fault_of_the_node(
    h100: GpuNode, judge: Judge, tmp_path: Path
) -> None:
    """NVML then says that no driver is loaded; the kernel's driver lists its GPUs all the same."""
    for name in h100.node.names():
        (tmp_path / "proc/driver/nvidia/gpus" / h100.address(name)).mkdir(parents=True)
    h100.gpus.driver.unload()
    config = {**h100.spec().config, "procfs": str(tmp_path / "proc")}
    async with judged(h100.spec(config=config), judge) as stage:
        lost = await stage.lost()
    assert "the kernel's driver lists 4 GPUs, and NVML does not reach it" in lost.reason
    assert judge.open("node") == {}
    assert judge.view("node").verdict is not Verdict.NO_NEW_JOBS


async def test_a_fault_of_the_driver_that_an_earlier_process_told_ends_once_it_is_open(
    h100: GpuNode, judge: Judge
) -> None:
    judge.take(node_fault("nvidia", "NV_VERSION_MISMATCH", "told before"))
    assert judge.open("node") == {"NV_VERSION_MISMATCH": "PreSeparateFault"}
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: judge.open("node") == {})


async def test_a_driver_loaded_anew_between_two_polls_is_noticed(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        before = len(stage.inputs)
        h100.gpus.driver.load()
        await stage.lost(after=before)
        await stage.back(after=before)
        h100.gpus.raise_xid("gpu2", 79)
        await stage.signal("XID_79", "gpu2", "once")


async def test_an_upgraded_library_is_used_once_the_driver_fits_it(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.driver.upgrade_library("580.95.05")
        await stage.polled("gpu0", times=3)
        assert judge.open("node") == {}
        h100.gpus.driver.unload()
        await stage.signal("NV_DRIVER_NOT_LOADED", "node", "occur")
        h100.gpus.driver.load("570.124.06")
        await stage.signal("NV_VERSION_MISMATCH", "node", "occur")
        before = len(stage.inputs)
        h100.gpus.driver.load("580.95.05")
        await stage.back(after=before)
        await stage.until(lambda: judge.open("node") == {})
        assert "580.95.05" in str(stage.inputs[before:])


async def test_once_the_worker_has_ended_nothing_is_held(h100: GpuNode) -> None:
    async with judged(h100.spec(), Judge()) as stage:
        await stage.back()
        assert [client.process_id for client in h100.gpus.driver.clients()] == [stage.health.pid]
    assert h100.gpus.driver.clients() == []
    # The end of the process lets go. Closing the library would take it from threads that are still in it.
    assert h100.node.calls("nvmlShutdown") == 0
