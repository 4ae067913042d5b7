"""Which BMC is asked for its list of faults, and what is taken from one that has none."""

from nodeagent.core.model import ActiveSet, Assertion, SourceLost
from nodeagent.drivers.bmc.driver import SETTLING_READINGS
from nodeagent.emulator.bmc import SUPERMICRO, BmcFault
from nodeagent.emulator.node import EmulatedNode
from tests.daemon.staged import Staged, staged
from tests.drivers.worker_specs import bmc_spec

POWER_SUPPLY_FAILED = (0x08, 0x01)


def lists(stage: Staged) -> list[ActiveSet]:
    return [given for given in stage.inputs if isinstance(given, ActiveSet)]


def measured(stage: Staged, name: str) -> float | None:
    return stage.health.readings.get("*", {}).get(name)


async def test_the_bmc_of_another_vendor_never_gets_huaweis_command(node: EmulatedNode) -> None:
    node.set_node("bmc_manufacturer", SUPERMICRO)
    async with staged(bmc_spec(node)) as stage:
        await stage.back()
        node.bmc.log(*POWER_SUPPLY_FAILED, sensor=0x4A)
        await stage.signal("BMC_POWER_SUPPLY_FAILED.4A", "node", Assertion.ONCE)
        assert node.state.node.bmc_list_requests == 0


async def test_a_bmc_under_another_name_is_asked_where_the_configuration_says_so(node: EmulatedNode) -> None:
    node.set_node("bmc_manufacturer", SUPERMICRO)
    node.bmc.raise_fault(BmcFault(0x1D))
    config = {"library": str(node.ipmi), "fault_list": "always"}
    async with staged(bmc_spec(node, config=config)) as stage:
        found = await stage.until(lambda: lists(stage))
        assert [active.code for active in found[0].codes] == ["0000001D"]


async def test_the_list_is_left_alone_where_the_configuration_says_so(node: EmulatedNode) -> None:
    node.bmc.raise_fault(BmcFault(0x1D))
    config = {"library": str(node.ipmi), "fault_list": "never"}
    async with staged(bmc_spec(node, config=config)) as stage:
        found = await stage.until(lambda: lists(stage))
        assert (found[0].device, found[0].codes) == ("*", ())
        assert node.state.node.bmc_list_requests == 0


async def test_a_huawei_bmc_that_has_no_list_yet_says_nothing_of_faults(node: EmulatedNode) -> None:
    node.set_node("bmc_has_list", 0)
    async with staged(bmc_spec(node)) as stage:
        await stage.back()
        assert lists(stage) == []
        node.bmc.raise_fault(BmcFault(0x1D))
        node.set_node("bmc_has_list", 1)
        found = await stage.until(lambda: lists(stage))
        assert (found[0].device, [active.code for active in found[0].codes]) == ("node", ["0000001D"])


async def test_a_bmc_that_goes_on_having_no_list_has_none(node: EmulatedNode) -> None:
    node.set_node("bmc_has_list", 0)
    async with staged(bmc_spec(node)) as stage:
        found = await stage.until(lambda: lists(stage))
        assert (found[0].device, found[0].codes, found[0].complete) == ("*", (), True)


async def test_a_list_that_is_gone_while_it_is_watched_is_a_loss_and_no_recovery(node: EmulatedNode) -> None:
    node.bmc.raise_fault(BmcFault(0x1D))
    async with staged(bmc_spec(node)) as stage:
        await stage.back()
        node.set_node("bmc_has_list", 0)
        lost = await stage.lost()
        assert lost.reason == "list of faults: the BMC does not know the command (completion code 0xC1)"
        assert all(given.codes for given in lists(stage))


async def test_after_a_loss_the_list_ends_nothing_until_the_bmc_has_settled(node: EmulatedNode) -> None:
    node.bmc.raise_fault(BmcFault(0x1D))
    async with staged(bmc_spec(node)) as stage:
        await stage.back()
        node.bmc.answer("truncated")
        await stage.lost()
        before = len(stage.inputs)
        node.bmc.clear_faults()
        node.bmc.answer("well")
        await stage.back(after=before)

        def after() -> list[bool]:
            return [given.complete for given in stage.inputs[before:] if isinstance(given, ActiveSet)]

        await stage.until(lambda: any(after()), "a list that is whole")
        assert after()[: SETTLING_READINGS + 1] == [False] * SETTLING_READINGS + [True]


async def test_an_id_that_makes_no_sense_is_asked_for_again(node: EmulatedNode) -> None:
    node.bmc.raise_fault(BmcFault(0x1D))
    node.bmc.answer("garbage", times=1)
    async with staged(bmc_spec(node)) as stage:
        found = await stage.until(lambda: lists(stage))
        assert [active.code for active in found[0].codes] == ["0000001D"]


async def test_a_log_that_cannot_be_read_costs_the_list_of_faults_nothing(node: EmulatedNode) -> None:
    async with staged(bmc_spec(node)) as stage:
        await stage.until(lambda: measured(stage, "log_records") is not None, "a reading of the log")
        node.set_node("bmc_has_log", 0)
        await stage.until(lambda: measured(stage, "failed_readings_total"), "a reading that failed")
        node.bmc.raise_fault(BmcFault(0x1D))
        await stage.until(lambda: any(given.codes for given in lists(stage)))
        assert not [given for given in stage.inputs if isinstance(given, SourceLost)]
        node.set_node("bmc_has_log", 1)
        node.bmc.log(*POWER_SUPPLY_FAILED, sensor=0x4A)
        await stage.signal("BMC_POWER_SUPPLY_FAILED.4A", "node", Assertion.ONCE)


async def test_a_bmc_with_neither_list_nor_log_is_read_and_has_nothing(node: EmulatedNode) -> None:
    node.set_node("bmc_manufacturer", SUPERMICRO)
    node.set_node("bmc_has_log", 0)
    async with staged(bmc_spec(node)) as stage:
        await stage.back()
        await stage.until(lambda: measured(stage, "failed_readings_total") is not None, "a reading")
        assert measured(stage, "failed_readings_total") == 0
