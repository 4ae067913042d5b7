"""What the driver writes to the kernel log beside Xids concerns one GPU, named in that line or another."""

import pytest

from nodeagent.core.model import NODE, Assertion, DeviceSeen, Kind, SourceBack, Verdict
from nodeagent.daemon.sources.translate import fault
from nodeagent.emulator.gpus import xid_line
from tests.drivers.nvidia.bench import Judge

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
