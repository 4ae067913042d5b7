"""A super node's UnifiedBus switches beside its NPUs: what breaks there concerns the node, not each chip."""

from pathlib import Path

from nodeagent.client import EventKind, Level, Verdict
from nodeagent.emulator.switches import RING_IS_FULL, FabricFault
from tests.harness.subscriber import without_gap
from tests.stories.npus import CHIPS, TABLE, Npus, emulated_npus

BROKEN = FabricFault(0x00F103B0, chip=0, port=0xFFFF, sub_type=155907)
BROKEN_CODE = "[0x00f103b0,155907,na,na]"
LINK_DOWN = FabricFault(0x08520003, chip=2, port=5, peer_device=2)
LINK_DOWN_CODE = "[0x08520003,na,L2,na]"

QUEUE_FULL = "ASC_LQ_QUEUE_FULL"
INIT = "lq_dcmi_init"
ASKED = "lq_dcmi_get_fault_info"
USER = 1
"""The facility of lines that user space writes."""


async def test_a_broken_switch_isolates_the_node_until_it_is_over_and_a_link_that_is_down_does_not(
    tmp_path: Path,
) -> None:
    async with emulated_npus(tmp_path, "16xA3") as npus:
        node = npus.node
        npus.tables = (TABLE, "unifiedbus.toml")
        npus.sections = ("[drivers.unifiedbus]", f'library = "{node.lingqu}"', f'sysfs = "{npus.sysfs}"')
        await npus.start()
        await npus.observed()
        node.switches.raise_fault(LINK_DOWN)
        port = await npus.raised("ub2/5", LINK_DOWN_CODE)
        assert port.condition_level is Level.NOT_HANDLE
        await all_take_work(npus)

        node.switches.raise_fault(BROKEN)
        switch = await npus.raised("ub0", BROKEN_CODE)
        meanwhile = await npus.devices()
        assert switch.condition_level is Level.SEPARATE_FAULT
        assert (meanwhile["node"].verdict, meanwhile["ub0"].verdict) == (Verdict.ISOLATE, Verdict.ISOLATE)
        assert {meanwhile[chip].verdict for chip in CHIPS} == {Verdict.ALLOW}

        node.switches.clear_fault(BROKEN)
        node.switches.clear_fault(LINK_DOWN)
        await npus.cleared("ub0", BROKEN_CODE)
        await npus.cleared("ub2/5", LINK_DOWN_CODE)
        await all_take_work(npus)
        assert without_gap(npus.events)


async def test_an_event_that_the_driver_drops_is_made_good_at_once_when_the_kernel_says_so(
    tmp_path: Path,
) -> None:
    async with emulated_npus(tmp_path, "16xA3") as npus:
        node = npus.node
        npus.tables = (TABLE, "ascend-kernel.toml", "unifiedbus.toml")
        npus.sections = ("[drivers.unifiedbus]", f'library = "{node.lingqu}"', f'sysfs = "{npus.sysfs}"')
        await npus.start()
        await npus.daemon.comes(lambda: node.calls(ASKED) > 0, "the switches")

        npus.log.append(RING_IS_FULL, facility=USER)
        forged = await npus.emitted(EventKind.NOTICE, QUEUE_FULL, "node")
        assert forged.userspace
        node.switches.fill_ring()
        npus.log.append(node.switches.raise_fault(LINK_DOWN))
        await npus.raised("node", QUEUE_FULL)
        await npus.raised("ub2/5", LINK_DOWN_CODE)

        assert node.calls(INIT) == 2
        npus.log.append(node.switches.clear_fault(LINK_DOWN))
        await npus.cleared("ub2/5", LINK_DOWN_CODE)
        assert without_gap(npus.events)


async def all_take_work(npus: Npus) -> None:
    """A port that is listed because of its fault is UNKNOWN until it was read."""

    async def found() -> bool:
        return {device.verdict for device in (await npus.devices()).values()} == {Verdict.ALLOW}

    await npus.daemon.comes(found, "every verdict ALLOW")
