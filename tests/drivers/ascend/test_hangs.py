"""Calls that never return: of all chips, of the whole driver; and a replacement that skips one chip."""

from pathlib import Path

import pytest

from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.emulator.node import EmulatedNode
from tests.daemon.staged import HANG_S, is_alive
from tests.drivers.ascend.judged import Judged, judged
from tests.drivers.worker_specs import ascend_spec

HEALTH = "dcmi_get_device_health"
HOST_CALLS = {"dcmi_get_device_type", "dcmi_get_device_logic_id", "dcmi_get_device_phyid_from_logicid"}
"""Answered by the host's own driver: no chip can hold them up."""

CHIPS = {f"npu{number}" for number in range(8)}


@pytest.fixture
def spec(node: EmulatedNode, tmp_path: Path) -> WorkerSpec:
    return ascend_spec(node.dcmi, tmp_path / "sys", poll_interval_s=0.05, call_deadline_s=HANG_S)


def unobserved(stage: Judged) -> set[str]:
    return {view.name for view in stage.engine.view().devices if not view.observed and view.name != "node"}


def edges(stage: Judged, code: str, device: str) -> list[str]:
    return [kind for kind in stage.kinds_of(device, code) if kind in ("raised", "cleared")]


async def test_network_checks_of_all_chips_that_block_make_none_late_and_their_faults_are_told(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    async with judged(spec) as stage:
        node.hang(None, "dcmi_get_device_network_health", uninterruptibly=True)
        await stage.until(lambda: "network_health" not in stage.health.readings["npu5"], "an unknown value")
        polled = {chip: node.calls(HEALTH, chip) for chip in CHIPS}
        await stage.until(lambda: all(node.calls(HEALTH, c) > polled[c] + 5 for c in CHIPS), "further polls")
        node.raise_code("npu5", 0x80E01801)
        await stage.raised("npu5", "80E01801")
        assert (stage.faults("driver_unresponsive"), unobserved(stage)) == ([], set())
        assert stage.health.restarts == 0
        node.release()
        await stage.until(lambda: "network_health" in stage.health.readings["npu5"], "the value")


async def test_a_worker_stuck_in_the_kernel_is_replaced_by_one_that_leaves_its_chip_alone(
    node: EmulatedNode, spec: WorkerSpec
) -> None:
    async with judged(spec) as stage:
        stuck = stage.health.pid
        assert stuck is not None
        node.hang(uninterruptibly=True, process=stuck)
        await stage.until(lambda: stage.health.abandoned_pids == (stuck,), "an abandoned worker")
        await stage.until(lambda: len(unobserved(stage)) == 1, "a replacement for the others")
        (suspect,) = unobserved(stage)
        calls = calls_about(node, suspect)
        polled = node.calls(HEALTH, other(suspect))
        await stage.until(lambda: node.calls(HEALTH, other(suspect)) > polled + 20, "its polls")
        assert calls_about(node, suspect) == calls
        assert stage.device(suspect).id.count("-") == 4
        assert is_alive(stuck)
        node.release()
        await stage.until(lambda: not unobserved(stage), "all chips")
        await stage.until(lambda: not stage.health.abandoned_pids, "the end of the stuck one")


def calls_about(node: EmulatedNode, device: str) -> int:
    return sum(
        node.calls(function, device) for function in node.state.all_calls() if function not in HOST_CALLS
    )


def other(device: str) -> str:
    return next(chip for chip in sorted(CHIPS) if chip != device)


async def test_a_lock_of_the_whole_driver_makes_all_chips_unknown_once(
    node: EmulatedNode, tmp_path: Path
) -> None:
    spec = ascend_spec(
        node.dcmi, tmp_path / "sys", poll_interval_s=0.05, call_deadline_s=HANG_S, hello_deadline_s=5.0
    )
    async with judged(spec) as stage:
        stuck = stage.health.pid
        assert stuck is not None
        node.hang("npu5", lock=True, uninterruptibly=True)
        await stage.until(lambda: len(stage.health.abandoned_pids) == 2, "a replacement that is stuck too")
        assert unobserved(stage) == CHIPS
        assert stage.health.state == "abandoned"
        assert all(is_alive(pid) for pid in stage.health.abandoned_pids)
        before = len(stage.inputs)
        node.release()
        await stage.back(after=before)
        await stage.until(lambda: not unobserved(stage), "all chips")
        for device in CHIPS:
            assert edges(stage, "driver_unresponsive", device) == ["raised", "cleared"]
