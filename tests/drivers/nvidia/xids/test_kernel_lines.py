"""Illegal accesses accuse a GPU only where different jobs met them at one place.

What the driver writes to the kernel log beside Xids concerns one GPU, named in that line or another.
"""

import pytest

from nodeagent.core.model import NODE, Assertion, DeviceSeen, Kind, SourceBack, Verdict
from nodeagent.daemon.sources.translate import fault
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


FAULTY, WELL = "gpu3", "gpu4"
ADDRESSES = {FAULTY: "0000:9f:00", WELL: "0000:c3:00"}

ASSERTION = "nvAssertOkFailedNoLog: Assertion failed: "
RESET_REQUIRED = f"{ASSERTION}Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from status"
LOST = f"{ASSERTION}GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F) returned from rmStatus"
HEARTBEAT = "_kgspIsHeartbeatTimedOut: Heartbeat timed out, GSP has not answered for 5s"


@pytest.fixture
def node() -> Judge:
    """A node of two GPUs."""
    judge = Judge()
    for device, address in ADDRESSES.items():
        judge.take(
            DeviceSeen(
                source="nvidia",
                device=device,
                kind=Kind.CHIP,
                vendor="nvidia",
                identity=f"GPU-{device}",
                attributes={"pci": f"{address}.0"},
            )
        )
    judge.take(SourceBack(source="nvidia"))
    return judge


def is_alone_at_fault(judge: Judge) -> bool:
    """The node and the other GPU go on."""
    assert judge.open(WELL) == {}
    assert judge.open(NODE) == {}
    assert judge.view(WELL).verdict is judge.view(NODE).verdict is Verdict.ALLOW
    return judge.view(FAULTY).verdict is Verdict.ISOLATE


def test_a_gpu_found_lost_at_the_start_is_named_by_a_record_of_several_lines(node: Judge) -> None:
    node.kernel_line(
        f"NVRM: The NVIDIA GPU {ADDRESSES[FAULTY]}.0\n"
        "NVRM: (PCI ID: 10de:2330) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands."
    )
    node.kernel_line("NVRM: The NVIDIA probe routine failed for 1 device(s).")
    assert node.open(FAULTY) == {"NV_FALLEN_OFF": "SeparateNPU"}
    assert is_alone_at_fault(node)


def test_a_line_that_names_no_gpu_leaves_the_node_in_service_and_goes_with_the_gpu_that_another_names(
    node: Judge,
) -> None:
    node.kernel_line("NVRM: GPU has fallen off the bus.")
    assert node.open(NODE) == {"NV_FALLEN_OFF.unnamed": "SubHealthFault"}
    assert node.view(NODE).verdict is Verdict.ALLOW
    node.kernel_line(f"NVRM: Xid (PCI:{ADDRESSES[FAULTY]}): 79, GPU has fallen off the bus.")
    assert node.open(FAULTY) == {"XID_79": "SeparateNPU"}
    assert is_alone_at_fault(node)


def test_a_gpu_that_does_not_start_and_is_not_named_leaves_the_others_in_service(node: Judge) -> None:
    node.kernel_line("NVRM: RmInitAdapter failed! (0x24:0xffff:1211)")
    node.kernel_line("NVRM: rm_init_adapter failed for device bearing minor number 0")
    assert node.open(NODE) == {"NV_RMINIT_FAIL.unnamed": "SubHealthFault"}
    assert node.view(NODE).verdict is Verdict.ALLOW


def test_a_gpu_that_the_driver_left_out_is_the_one_that_it_does_not_list(node: Judge) -> None:
    node.kernel_line("NVRM: The NVIDIA probe routine failed for 1 device(s).")
    assert node.view(NODE).verdict is Verdict.NO_NEW_JOBS
    node.skip(600)
    node.take(fault("device_lost", "0000:d2:00.0", Assertion.OCCUR, source="nvidia"))
    assert node.open("0000:d2:00.0") == {"device_lost": "PreSeparateNPU"}
    assert node.open(NODE) == {}
    assert node.view(NODE).verdict is Verdict.ALLOW


def test_a_gpu_that_the_kernel_names_as_left_out_is_the_one(node: Judge) -> None:
    node.kernel_line(f"nvidia {ADDRESSES[FAULTY]}.0: probe with driver nvidia failed with error -1")
    node.kernel_line("NVRM: The NVIDIA probe routine failed for 1 device(s).")
    assert node.open(FAULTY) == {"NV_PROBE_FAIL.gpu": "PreSeparateNPU"}
    assert node.open(NODE) == {}
    assert node.view(NODE).verdict is Verdict.ALLOW


def test_a_gpu_whose_firmware_does_not_start_is_the_one_of_the_line_with_its_address(node: Judge) -> None:
    """The lines before it name none, or number the GPUs as those that started are not numbered."""
    for line in (
        "NVRM: _kgspBootGspRm: unexpected WPR2 already up, cannot proceed with booting GSP",
        "NVRM: RmInitAdapter: Cannot initialize GSP firmware RM",
        "NVRM: GPU4 RmInitAdapter: Cannot initialize GSP firmware RM",
        f"NVRM: GPU {ADDRESSES[FAULTY]}.0: RmInitAdapter failed! (0x62:0x40:2192)",
        f"NVRM: GPU {ADDRESSES[FAULTY]}.0: rm_init_adapter failed, device minor number 3",
    ):
        node.kernel_line(line)
    assert node.open(FAULTY) == {"NV_RMINIT_FAIL": "RestartNPU"}
    assert is_alone_at_fault(node)


@pytest.mark.parametrize(
    ("xid", "repeated"),
    [(79, LOST), (62, RESET_REQUIRED), (119, HEARTBEAT)],
    ids=["lost", "reset", "heartbeat"],
)
def test_lines_that_name_no_gpu_and_go_on_for_hours_belong_to_the_xid_they_follow(
    node: Judge, xid: int, repeated: str
) -> None:
    node.kernel_line(xid_line(ADDRESSES[FAULTY], xid))
    for _ in range(6):
        node.skip(1800)
        node.kernel_line(f"NVRM: {repeated}")
        node.kernel_line(f"NVRM: GPU{WELL.removeprefix('gpu')} {repeated}")
    assert list(node.open(FAULTY)) == [f"XID_{xid}"]
    assert is_alone_at_fault(node)


@pytest.mark.parametrize(
    ("repeated", "code"),
    [(LOST, "NV_GPU_ASSERT_SERIOUS"), (RESET_REQUIRED, "NV_RESET_REQUIRED"), (HEARTBEAT, "NV_GSP_HB")],
)
def test_the_number_in_a_line_is_no_index_of_nvml_and_blames_no_gpu(
    node: Judge, repeated: str, code: str
) -> None:
    """GPU4 is the lowest instance that was free when it was brought up, whichever GPU that is."""
    node.kernel_line(f"NVRM: GPU{WELL.removeprefix('gpu')} {repeated}")
    assert node.open(WELL) == {}
    assert node.view(WELL).verdict is Verdict.ALLOW
    assert node.open(NODE) == {code: "SubHealthFault"}
    assert node.view(NODE).verdict is Verdict.ALLOW


def test_a_line_that_names_no_gpu_and_follows_nothing_concerns_the_node(node: Judge) -> None:
    node.kernel_line(f"NVRM: {LOST}")
    assert node.open(NODE) == {"NV_GPU_ASSERT_SERIOUS": "SubHealthFault"}
