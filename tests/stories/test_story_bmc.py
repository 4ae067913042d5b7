"""Faults that only the BMC knows, from its interface to a subscriber; and a BMC that does not answer."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from nodeagent.client import EventKind, Handling, Level, Verdict
from nodeagent.emulator.bmc import BmcFault
from tests.harness.subscriber import without_gap
from tests.stories.bmc import emulated_bmc

VENDORS = Path(__file__).parents[1] / "fixtures/mindcluster/NodeDConfiguration.json"
"""MindCluster's own, component/noded/build/NodeDConfiguration.json."""

STANCE = {
    Level.NOT_HANDLE: (Verdict.ALLOW, Handling.NONE),
    Level.PRE_SEPARATE_FAULT: (Verdict.NO_NEW_JOBS, Handling.NONE),
    Level.SEPARATE_FAULT: (Verdict.ISOLATE, Handling.RESCHEDULE),
}

POWER_SUPPLY_FAILED = (0x08, 0x01)
MEMORY_UNCORRECTABLE = (0x0C, 0x01)


def vendors_levels() -> Mapping[str, Level]:
    lists = json.loads(VENDORS.read_text())["FaultTypeCode"]
    return {code: Level(name.removesuffix("Codes")) for name, codes in lists.items() for code in codes}


async def test_every_node_code_is_raised_at_the_vendors_level_and_cleared(tmp_path: Path) -> None:
    levels = vendors_levels()
    assert len(levels) == 59
    async with emulated_bmc(tmp_path) as board:
        await board.start()
        for code, level in levels.items():
            board.node.bmc.raise_fault(BmcFault(int(code, 16)))
            raised = await board.raised(code)
            assert (raised.device, raised.condition_level) == ("node", level), code
            assert (raised.verdict, raised.handling) == STANCE[level], code
            board.node.bmc.clear_fault(int(code, 16))
            assert (await board.cleared(code)).verdict is Verdict.ALLOW, code
        assert all(board.course(code) == ["raised", "cleared"] for code in levels)
        assert without_gap(board.subscriber.events)


async def test_all_node_codes_stand_at_once_and_one_that_ends_ends_alone(tmp_path: Path) -> None:
    codes = list(vendors_levels())
    async with emulated_bmc(tmp_path) as board:
        for part, code in enumerate(codes):
            board.node.bmc.raise_fault(BmcFault(int(code, 16), severity=3, part_type=1, part=part))
        await board.start()
        for part, code in enumerate(codes):
            raised = await board.raised(code)
            assert raised.evidence == {"severity": "3", "parts": f"type 1 number {part}"}
        assert await board.verdict() is Verdict.ISOLATE
        board.node.bmc.clear_fault(int(codes[30], 16))
        await board.cleared(codes[30])
        await board.read_again()
        assert await board.standing() == set(codes) - {codes[30]}


async def test_a_code_that_no_table_knows_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    async with emulated_bmc(tmp_path) as board:
        await board.start()
        board.node.bmc.raise_fault(BmcFault(0x7F0000AA, severity=3))
        raised = await board.raised("7F0000AA")
        assert (raised.unknown, raised.condition_level, raised.verdict) == (
            True,
            Level.NOT_HANDLE,
            Verdict.ALLOW,
        )


async def test_a_bmc_that_falls_silent_clears_nothing(tmp_path: Path) -> None:
    async with emulated_bmc(tmp_path) as board:
        board.node.bmc.raise_fault(BmcFault(0x1D))
        await board.start()
        await board.raised("0000001D")
        board.node.bmc.answer("silent")
        lost = await board.event(EventKind.SOURCE_LOST)
        assert lost.why == "list of faults: the BMC does not answer"
        assert (await board.verdict(), await board.standing()) == (Verdict.NO_NEW_JOBS, {"0000001D"})
        board.node.bmc.answer("well")
        await board.event(EventKind.SOURCE_BACK)
        board.node.bmc.clear_fault(0x1D)
        assert (await board.cleared("0000001D")).verdict is Verdict.ALLOW


@pytest.mark.parametrize(("required", "verdict"), [(False, Verdict.ALLOW), (True, Verdict.UNKNOWN)])
async def test_a_bmc_that_never_answers_makes_the_node_unknown_only_if_it_is_required(
    tmp_path: Path, required: bool, verdict: Verdict
) -> None:
    async with emulated_bmc(tmp_path) as board:
        board.required = required
        board.node.bmc.answer("silent")
        await board.start()
        lost = await board.event(EventKind.SOURCE_LOST)
        assert (lost.why, lost.verdict) == ("the BMC's id: the BMC does not answer", verdict)
        board.node.bmc.answer("well")
        assert (await board.event(EventKind.SOURCE_BACK)).verdict is Verdict.ALLOW


async def test_a_call_that_hangs_in_the_kernel_costs_the_source_alone(tmp_path: Path) -> None:
    async with emulated_bmc(tmp_path) as board:
        board.patience = ('poll_interval = "20ms"', 'call_deadline = "1s"')
        await board.start()
        await board.read_again()
        board.node.hang(None, "ioctl")
        raised = await board.raised("driver_unresponsive.bmc")
        assert (raised.device, raised.verdict) == ("node", Verdict.ALLOW)
        board.node.release()
        await board.cleared("driver_unresponsive.bmc")
        board.node.bmc.raise_fault(BmcFault(0x1D))
        await board.raised("0000001D")


async def test_what_the_bmc_logs_is_reported_once_over_restarts_of_worker_and_daemon(tmp_path: Path) -> None:
    async with emulated_bmc(tmp_path) as board:
        board.node.bmc.log(*MEMORY_UNCORRECTABLE, sensor=0x10, age_s=10**8)
        await board.start()
        await board.read_again()
        board.node.bmc.log(*MEMORY_UNCORRECTABLE, sensor=0x53)
        code = "BMC_MEMORY_UNCORRECTABLE.53"
        raised = await board.raised(code)
        assert (raised.condition_level, raised.verdict) == (Level.PRE_SEPARATE_FAULT, Verdict.NO_NEW_JOBS)
        assert raised.evidence["record"] == "2"
        await board.kill()
        board.node.bmc.log(*POWER_SUPPLY_FAILED, sensor=0x4A)
        await board.start()
        await board.raised("BMC_POWER_SUPPLY_FAILED.4A")
        await board.read_again()
        conditions = {each.code: each.count for each in (await board.snapshot()).conditions}
        assert conditions == {code: 1, "BMC_POWER_SUPPLY_FAILED.4A": 1}
        assert board.course("BMC_MEMORY_UNCORRECTABLE.10") == []


async def test_what_the_bmc_logs_as_over_ends_the_fault_of_that_sensor_alone(tmp_path: Path) -> None:
    async with emulated_bmc(tmp_path) as board:
        await board.start()
        await board.read_again()
        for sensor in (0x4A, 0x4B):
            board.node.bmc.log(*POWER_SUPPLY_FAILED, sensor=sensor)
        board.node.bmc.log(*POWER_SUPPLY_FAILED, sensor=0x4A, is_over=True)
        await board.cleared("BMC_POWER_SUPPLY_FAILED.4A")
        assert await board.standing() == {"BMC_POWER_SUPPLY_FAILED.4B"}


async def test_a_log_that_is_full_is_a_notice(tmp_path: Path) -> None:
    async with emulated_bmc(tmp_path) as board:
        await board.start()
        await board.read_again()
        board.node.bmc.log(0x04, 0x00)
        board.node.set_node("sel_overflow", 1)
        notice = await board.subscriber.event(EventKind.NOTICE, "BMC_LOG_FULL")
        assert (notice.evidence, notice.verdict) == ({"records": "1"}, Verdict.ALLOW)
        assert await board.standing() == set()
