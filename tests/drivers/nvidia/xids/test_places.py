"""Illegal accesses accuse a GPU only where different jobs met them at one place."""

import pytest

from nodeagent.core.model import Verdict
from nodeagent.emulator.gpus import Instance, xid_line
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

SM = "Graphics SM Warp Exception on (GPC 0, TPC 1, SM {sm}): Out Of Range Address"
OTHER_SM = "Graphics SM Warp Exception on (GPC 6, TPC 1, SM 0): Out Of Range Address"
CACHE = (
    "channel 0x0000000c, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC6 GPCCLIENT_T1_13 faulted @ "
    "0x6f17_04027000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE"
)
WITHOUT_GPC = CACHE.replace("GPC6 ", "")
HOUR_S = 3600


@pytest.fixture
def older(h100: GpuNode) -> GpuNode:
    """Its driver does not say which recovery a GPU needs."""
    h100.gpus.driver.make_older("520")
    return h100


async def programs_fail(
    bench: GpuNode, judge: Judge, xid: int, *lines: tuple[int, str], device: str = "gpu0"
) -> None:
    """One program an hour, by pid, and the text of its line."""
    instance = Instance(gpu=1) if "/" in device else None
    async with judged(bench.spec(), judge) as stage:
        await stage.back()
        for pid, text in lines:
            stage.inputs.clear()
            pci = bench.gpus.pci("gpu0")
            judge.kernel_line(xid_line(pci, xid, text, process_id=pid, process_name="a", instance=instance))
            bench.gpus.raise_xid("gpu0", xid, instance=instance)
            await stage.signal(f"XID_{xid}", device, "once")
            judge.skip(HOUR_S)


@pytest.mark.parametrize(
    ("xid", "texts"),
    [(13, [SM.format(sm=0), SM.format(sm=1), SM.format(sm=0)]), (31, [CACHE] * 3)],
    ids=["13", "31"],
)
async def test_three_jobs_that_fail_at_one_place_make_the_gpu_subhealthy_and_no_more(
    older: GpuNode, judge: Judge, xid: int, texts: list[str]
) -> None:
    await programs_fail(older, judge, xid, *enumerate(texts, start=4000))
    (promotion,) = judge.engine.view().promotions
    assert (promotion.rule, promotion.level.value) == ("xid-at-one-place", "SubHealthFault")
    assert {event.verdict for event in judge.events} <= {Verdict.ALLOW, Verdict.UNKNOWN}


@pytest.mark.parametrize(
    ("xid", "lines"),
    [
        (13, [(4000, SM), (4000, SM), (4000, SM)]),
        (13, [(4000, SM), (4001, OTHER_SM), (4002, SM)]),
        (31, [(4000, WITHOUT_GPC), (4001, WITHOUT_GPC), (4002, WITHOUT_GPC)]),
    ],
    ids=["one program", "other places", "no place"],
)
async def test_otherwise_nobody_is_accused(
    older: GpuNode, judge: Judge, xid: int, lines: list[tuple[int, str]]
) -> None:
    await programs_fail(older, judge, xid, *((pid, text.format(sm=0)) for pid, text in lines))
    assert judge.engine.view().promotions == ()


async def test_where_the_driver_tells_which_recovery_a_gpu_needs_that_decides(
    h100: GpuNode, judge: Judge
) -> None:
    await programs_fail(h100, judge, 13, *((pid, SM.format(sm=0)) for pid in range(4000, 4004)))
    assert judge.engine.view().promotions == ()
