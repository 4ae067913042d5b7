"""NVLinks that ought to be up: by what was up before, over workers and daemons, and by the GPUs beside."""

from pathlib import Path

import pytest

from nodeagent.core.model import Operator
from nodeagent.daemon.sources.baselines import open_codes_of
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

DOWN = {"NV_NVLINK_INACTIVE": "SubHealthFault"}
FEWER = {"NV_NVLINK_FEWER": "SubHealthFault"}
NOT_SUPPORTED = 3
LINKS = 18


def without_switches(bench: GpuNode) -> GpuNode:
    """Their links lead to each other, and there is no fabric to join."""
    for name in bench.node.names():
        bench.node.set(name, "gpu_nvlink_remote_type", 0)
        bench.node.set(name, "gpu_fabric_state", 0)
    return bench


@pytest.fixture
def joined(h100: GpuNode) -> GpuNode:
    """Four GPUs that lead to each other."""
    return without_switches(h100)


def is_well(judge: Judge, gpu: str) -> bool:
    """A link has to be up for a while."""
    judge.skip(11)
    return judge.open(gpu) == {}


def set_links(bench: GpuNode, gpu: str, *links: int, active: bool = False) -> None:
    for link in links:
        bench.gpus.set_link(gpu, link, active=active)


async def test_a_link_that_went_down_is_still_down_for_the_next_daemon(joined: GpuNode, judge: Judge) -> None:
    async with judged(joined.spec(), judge) as stage:
        await stage.back()
        set_links(joined, "gpu0", 3)
        await stage.until(lambda: judge.open("gpu0") == DOWN)
    async with judged(judge.kept(joined.spec()), judge) as stage:
        await stage.polled("gpu0", times=12)
        assert judge.open("gpu0") == DOWN
        readings = stage.health.readings["gpu0"]
        assert (readings["nvlink_links_up"], readings["nvlink_links_missing"]) == (17.0, 1.0)
        set_links(joined, "gpu0", 3, active=True)
        await stage.until(lambda: is_well(judge, "gpu0"))


async def test_a_link_that_went_down_while_nobody_looked_is_missed(joined: GpuNode, judge: Judge) -> None:
    async with judged(joined.spec(), judge) as stage:
        await stage.polled("gpu0", times=2)
    set_links(joined, "gpu0", 3)
    async with judged(judge.kept(joined.spec()), judge) as stage:
        await stage.until(lambda: judge.open("gpu0") == DOWN)
        (condition,) = judge.engine.view().conditions
        assert condition.backing.evidence == {
            "links": "3",
            "links_up": "17",
            "links_missing": "1",
            "expected_because": "they were up before",
        }


async def test_a_crash_of_the_worker_does_not_make_a_link_well(joined: GpuNode, judge: Judge) -> None:
    async with judged(joined.spec(), judge) as stage:
        await stage.back()
        set_links(joined, "gpu0", 3)
        await stage.until(lambda: judge.open("gpu0") == DOWN)
        before = len(stage.inputs)
        joined.node.crash("gpu1")
        await stage.lost(after=before)
        await stage.back(after=before)
        await stage.polled("gpu0", times=12)
        assert judge.open("gpu0") == DOWN
        assert judge.emitted("cleared", device="gpu0") == []


async def test_a_worker_that_lets_go_and_takes_up_again_still_misses_the_link(
    joined: GpuNode, judge: Judge
) -> None:
    async with judged(joined.spec(), judge) as stage:
        await stage.back()
        set_links(joined, "gpu0", 3)
        await stage.until(lambda: judge.open("gpu0") == DOWN)
        before = len(stage.inputs)
        assert await stage.supervisor.let_go("quiesced")
        stage.supervisor.take_up()
        await stage.back(after=before)
        await stage.polled("gpu0", times=12)
        assert judge.open("gpu0") == DOWN


async def test_a_fault_that_was_open_before_anything_was_kept_is_not_closed_by_who_has_not_seen_it_well(
    joined: GpuNode, judge: Judge
) -> None:
    """A store of a version that kept nothing."""
    async with judged(joined.spec(), judge) as stage:
        await stage.back()
        set_links(joined, "gpu0", 3)
        await stage.until(lambda: judge.open("gpu0") == DOWN)
    old = joined.spec(open_codes=open_codes_of(judge.engine.view(), "nvidia"))
    async with judged(old, judge) as stage:
        await stage.polled("gpu0", times=12)
        assert judge.open("gpu0") == DOWN
        set_links(joined, "gpu0", 3, active=True)
        await stage.until(lambda: is_well(judge, "gpu0"))


async def test_another_gpu_in_the_slot_misses_nothing_of_the_one_before(
    joined: GpuNode, judge: Judge
) -> None:
    async with judged(joined.spec(), judge) as stage:
        await stage.polled("gpu0", times=2)
    for name in joined.node.names():
        set_links(joined, name, 3)
        joined.gpus.replace(name, seed=int(name[3:]) + 70)
    async with judged(judge.kept(joined.spec()), judge) as stage:
        await stage.polled("gpu0", times=12)
        assert judge.open("gpu0") == {}


async def test_what_a_person_takes_for_right_is_missed_no_more(joined: GpuNode, judge: Judge) -> None:
    async with judged(joined.spec(), judge) as stage:
        await stage.back()
        set_links(joined, "gpu0", 3, 5)
        await stage.until(lambda: judge.open("gpu0") == DOWN)
        uuid = joined.gpus.uuid("gpu0")
        judge.take(Operator(who="uid:0", what="rebaseline", device=uuid, reason="bridge taken out"))
        (kept,) = [each for each in judge.engine.view().baselines if each.device_id == uuid]
        assert (kept.number, kept.content) == (1, "")
        stage.supervisor.restart_baseline(uuid, kept.number)
        await stage.until(lambda: is_well(judge, "gpu0"))
        set_links(joined, "gpu0", 7)
        await stage.until(lambda: judge.open("gpu0") == DOWN)
    async with judged(judge.kept(joined.spec()), judge) as stage:
        await stage.polled("gpu0", times=12)
        assert stage.health.readings["gpu0"]["nvlink_links_missing"] == 1.0


async def test_a_gpu_with_fewer_links_than_those_beside_it_is_told_as_advice(
    tmp_path: Path, judge: Judge
) -> None:
    """Azure/azhpc-diagnostics issue 73: links 3 and 5 of one V100 inactive, those of the other seven up."""
    bench = without_switches(GpuNode(tmp_path, "8xA100"))
    set_links(bench, "gpu3", 3, 5)
    with bench.node:
        async with judged(bench.spec(), judge) as stage:
            await stage.back()
            await stage.until(lambda: judge.open("gpu3") == FEWER)
            assert [judge.open(f"gpu{number}") for number in range(8) if number != 3] == [{}] * 7
            assert stage.health.readings["gpu3"]["nvlink_links_missing"] == 2.0
            judge.skip(3600)
            assert judge.open("gpu3") == FEWER
        async with judged(judge.kept(bench.spec()), judge) as stage:
            await stage.polled("gpu3", times=12)
            assert judge.open("gpu3") == FEWER


async def test_advice_about_two_gpus_stands_over_a_restart(joined: GpuNode, judge: Judge) -> None:
    """The first that are read have nobody to be compared with but each other."""
    for gpu in ("gpu0", "gpu1"):
        set_links(joined, gpu, 3, 5)
    async with judged(joined.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: judge.open("gpu0") == judge.open("gpu1") == FEWER)
    async with judged(judge.kept(joined.spec()), judge) as stage:
        await stage.polled("gpu1", times=20)
        assert judge.open("gpu0") == judge.open("gpu1") == FEWER
        assert judge.emitted("cleared") == []


async def test_advice_ends_when_the_others_have_no_more_either(joined: GpuNode, judge: Judge) -> None:
    set_links(joined, "gpu0", 3)
    async with judged(joined.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: judge.open("gpu0") == FEWER)
        for gpu in ("gpu1", "gpu2", "gpu3"):
            set_links(joined, gpu, 3)
        await stage.until(lambda: judge.open("gpu0") == {})
        assert judge.open("gpu1") == DOWN


async def test_a_gpu_with_another_number_of_links_is_not_compared(joined: GpuNode, judge: Judge) -> None:
    joined.node.set("gpu3", "gpu_nvlink_count", 12)
    async with judged(joined.spec(), judge) as stage:
        await stage.polled("gpu3", times=12)
        assert judge.open("gpu3") == {}


@pytest.mark.parametrize("product", ["4xB200", "4xH100"])
async def test_no_link_up_on_any_gpu_that_has_joined_a_fabric_is_a_fault(
    tmp_path: Path, judge: Judge, product: str
) -> None:
    bench = GpuNode(tmp_path, product)
    for name in bench.node.names():
        set_links(bench, name, *range(LINKS))
    with bench.node:
        async with judged(bench.spec(), judge) as stage:
            await stage.back()
            await stage.until(lambda: all(judge.open(name) == DOWN for name in bench.node.names()))
            assert stage.health.readings["gpu0"]["nvlink_links_missing"] == 18.0


async def test_the_same_links_down_on_every_gpu_of_a_board_with_switches_are_told(
    h100: GpuNode, judge: Judge
) -> None:
    for name in h100.node.names():
        set_links(h100, name, 0, 1, 2, 3)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: all(judge.open(name) == FEWER for name in h100.node.names()))
        assert stage.health.readings["gpu0"]["nvlink_links_missing"] == 4.0


async def test_modules_without_switches_of_which_no_link_is_up_are_told_and_cards_are_not(
    tmp_path: Path, judge: Judge
) -> None:
    bench = without_switches(GpuNode(tmp_path, "2xA100"))
    for name in bench.node.names():
        set_links(bench, name, *range(12))
    with bench.node:
        async with judged(bench.spec(), judge) as stage:
            await stage.back()
            await stage.until(lambda: judge.open("gpu0") == judge.open("gpu1") == FEWER)
        for name in bench.node.names():
            bench.node.chip(name).gpu_name = b"NVIDIA A100 80GB PCIe"
        other = Judge()
        async with judged(bench.spec(), other) as stage:
            await stage.polled("gpu1", times=12)
            assert other.open("gpu0") == other.open("gpu1") == {}


async def test_a_link_that_is_refused_after_it_was_up_is_down(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        number = h100.node.answer(NOT_SUPPORTED, "gpu0", "field:165:3")
        await stage.until(lambda: judge.open("gpu0") == DOWN)
        readings = stage.health.readings["gpu0"]
        assert (readings["link_up.3"], readings["nvlink_links_up"]) == (0.0, 17.0)
        h100.node.release(number)
        await stage.until(lambda: is_well(judge, "gpu0"))


@pytest.mark.parametrize("before", [True, False], ids=["before the start", "while it runs"])
async def test_a_gpu_all_of_whose_links_are_refused_misses_those_that_others_have(
    h100: GpuNode, judge: Judge, before: bool
) -> None:
    def refuse() -> None:
        h100.node.answer(NOT_SUPPORTED, "gpu0", "field:165")
        h100.node.answer(NOT_SUPPORTED, "gpu0", "nvmlDeviceGetNvLinkState")

    if before:
        refuse()
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        if not before:
            refuse()
        await stage.until(lambda: judge.open("gpu0") == DOWN)
        readings = stage.health.readings["gpu0"]
        assert (readings["nvlink_links_up"], readings["nvlink_links_missing"]) == (0.0, 18.0)
        assert judge.open("gpu1") == {}


async def test_links_that_the_driver_was_told_not_to_use_are_not_missed(
    joined: GpuNode, judge: Judge, tmp_path: Path
) -> None:
    async with judged(joined.spec(), judge) as stage:
        await stage.polled("gpu0", times=2)
    for name in joined.node.names():
        set_links(joined, name, *range(LINKS))
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/params").write_text("EnableMSI: 1\nNvLinkDisable: 1\n")
    config = {**joined.spec().config, "procfs": str(tmp_path / "proc")}
    async with judged(judge.kept(joined.spec(config=config)), judge) as stage:
        await stage.polled("gpu0", times=12)
        assert judge.open("gpu0") == {}
    async with judged(judge.kept(joined.spec()), judge) as stage:
        await stage.until(lambda: judge.open("gpu0") == DOWN)


async def test_a_link_that_was_missed_for_its_peers_is_missed_before_they_are_read_again(
    h100: GpuNode, judge: Judge
) -> None:
    set_links(h100, "gpu1", 7)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: judge.open("gpu1") == DOWN)
    # If gpu1 is read first, its link is one of FEWER until the others are read; that is not the matter here.
    judge.events.clear()
    for other in ("gpu0", "gpu2", "gpu3"):
        h100.node.answer(999, other)
    async with judged(judge.kept(h100.spec()), judge) as stage:
        await stage.polled("gpu1", times=12)
        assert judge.open("gpu1") == DOWN
        assert judge.emitted("cleared", device="gpu1") == []


async def test_a_gpu_whose_links_are_down_is_still_reset_with_those_that_they_led_to(
    tmp_path: Path, judge: Judge
) -> None:
    """Before Ampere all GPUs that are linked are reset together."""
    bench = without_switches(GpuNode(tmp_path, "2xA100"))
    for name in bench.node.names():
        bench.node.set(name, "gpu_architecture", 5)
    with bench.node:
        async with judged(bench.spec(), judge) as stage:
            await stage.polled("gpu0", times=2)
            assert judge.view("gpu0").attributes["group"] == "nvlink"
        for name in bench.node.names():
            set_links(bench, name, *range(12))
        async with judged(judge.kept(bench.spec()), judge) as stage:
            await stage.polled("gpu0", times=2)
            groups = [judge.view(name).attributes["group"] for name in bench.node.names()]
            assert groups == ["nvlink", "nvlink"]


async def test_where_links_lead_is_asked_until_it_is_known(h100: GpuNode, judge: Judge) -> None:
    function = "nvmlDeviceGetNvLinkRemoteDeviceType"
    for name in h100.node.names():
        h100.node.answer(999, name, function)
    set_links(h100, "gpu1", 7)
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu1", times=12)
        h100.node.release()
        await stage.until(lambda: judge.open("gpu1") == DOWN)


async def test_a_link_to_the_cpu_that_is_no_longer_counted_is_missed_by_the_next_daemon(
    h100: GpuNode, judge: Judge
) -> None:
    h100.node.set("gpu0", "gpu_c2c_link_count", 10)
    h100.node.set("gpu0", "gpu_c2c_mode", 1)
    for link in range(10):
        h100.node.set("gpu0", "gpu_c2c_link_states", 1, link)
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu0", times=2)
        assert judge.open("gpu0") == {}
    h100.node.set("gpu0", "gpu_c2c_link_count", 9)
    async with judged(judge.kept(h100.spec()), judge) as stage:
        await stage.until(lambda: judge.open("gpu0") == {"NV_C2C_DOWN": "SubHealthFault"})
