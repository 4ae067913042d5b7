"""What the shipped rules make of faults that come together, in the core that judges them."""

from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import Event, EventKind, Handling, Level, Signal, Verdict
from tests.core.build import back, begin, condition, device_view, held, open_codes, run, seen, signal, xid
from tests.shipped import shipped_catalog

REPOSITORY = Path(__file__).parents[3]
GPU, SWITCH = "npu0", "0000:05:00.0"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return shipped_catalog()


def codes(engine: Engine) -> list[str]:
    return [code for _, code in open_codes(engine)]


def test_channels_removed_after_a_graver_xid_are_its_companions(catalog: Catalog) -> None:
    engine = begin(catalog)
    run(engine, [(1, xid("XID_119")), (2, xid("XID_45")), (3, xid("XID_45"))])
    assert codes(engine) == ["XID_119"]


def test_channels_removed_beside_a_fault_of_another_gpu_are_a_fault_of_their_own(catalog: Catalog) -> None:
    engine = begin(catalog)
    run(engine, [(1, xid("XID_119", "0000:3c:00.0")), (2, xid("XID_45"))])
    assert codes(engine) == ["XID_119", "XID_45"]


@pytest.mark.parametrize(
    ("company", "level"),
    [
        ((), Level.RESTART_NPU),
        (("XID_63",), Level.FREE_RESTART_NPU),
        (("XID_94",), Level.FREE_RESTART_NPU),
        (("XID_63", "XID_95"), Level.RESTART_NPU),
        (("XID_94.restart",), Level.FREE_RESTART_NPU),
        (("XID_94.drain",), Level.FREE_RESTART_NPU),
        (("XID_63", "XID_95.reset"), Level.RESTART_NPU),
        (("XID_94", "XID_64"), Level.RESTART_NPU),
    ],
)
def test_a_double_bit_error_is_as_grave_as_its_company(
    catalog: Catalog, company: tuple[str, ...], level: Level
) -> None:
    engine = begin(catalog)
    run(engine, [(1, xid("XID_48")), *((2 + n, xid(code)) for n, code in enumerate(company))])
    assert condition(engine, "XID_48").level is level


def test_power_smoothing_that_is_back_closes_its_absence_on_that_gpu(catalog: Catalog) -> None:
    engine = begin(catalog)
    run(engine, [(1, xid("XID_163")), (2, xid("XID_163", "0000:3c:00.0")), (50_000, xid("XID_162"))])
    assert codes(engine) == ["XID_163", "XID_162"]


def test_a_recovery_action_stands_until_the_driver_needs_nothing_more(catalog: Catalog) -> None:
    engine = begin(catalog)
    run(engine, [(1, xid("XID_154.4"))])
    assert condition(engine, "XID_154.4").level is Level.FREE_RESTART_NPU
    run(engine, [(5000, xid("XID_154.0"))])
    assert codes(engine) == ["XID_154.0"]


@pytest.mark.parametrize("times", [1, 50])
def test_an_access_that_the_iommu_refuses_leaves_the_chip_in_service(catalog: Catalog, times: int) -> None:
    """A virtual machine that has the chip for itself may cause as many as it likes."""
    engine = begin(catalog)
    run(engine, [(600 * number, xid("IOMMU_FAULT", "0000:00:00.0")) for number in range(1, times + 1)])
    chip = device_view(engine)
    assert (chip.verdict, chip.handling, chip.subhealthy) == (Verdict.ALLOW, Handling.JOB_STRATEGY, True)
    assert engine.view().promotions == ()


def test_a_chip_that_the_kernel_cannot_reach_takes_no_new_jobs(catalog: Catalog) -> None:
    engine = begin(catalog)
    run(engine, [(1, xid("PCI_INACCESSIBLE", "0000:00:00.0"))])
    assert device_view(engine).verdict is Verdict.NO_NEW_JOBS


CONTAINED = "XID_94"
"""No program is at fault, so that it counts by the GPU."""


@pytest.mark.parametrize(
    "code",
    [
        f"XID_{number}"
        for number in (8, 13, 31, 39, 43, 44, 45, 60, 68, 69, 82, 86, 94, 109, 126, 137, 139, 170)
    ],
)
@pytest.mark.parametrize("job", ["job", None], ids=["held", "free"])
def test_programs_that_fail_one_after_the_other_leave_the_gpu_in_service(
    catalog: Catalog, code: str, job: str | None
) -> None:
    engine = begin(catalog, chips=0)
    run(engine, [(0, seen("gpu0", "GPU-1", source="nvidia")), (0, back("nvidia")), (0, held("gpu0", job))])
    for number in range(1, 7):
        run(engine, [(240 * number, xid(code, "gpu0", source="nvidia"))])
    assert engine.view().promotions == ()
    # A program that nobody has seen is one of which nobody knows whether it is the same again.
    moves = job is not None or code == CONTAINED
    assert (device_view(engine, "gpu0").verdict, device_view(engine, "gpu0").handling) == (
        Verdict.ALLOW,
        Handling.RESCHEDULE if moves else Handling.RESTART_JOB,
    )


@pytest.mark.parametrize(
    "xids",
    [
        ("XID_43",),
        ("XID_13", "XID_43"),
        ("XID_31",),
        ("XID_45",),
        ("XID_68", "XID_82"),
        ("XID_39",),
        ("XID_109",),
    ],
    ids=["index_assert", "out_of_range", "page_fault", "killed_job", "media", "copy", "hung_kernel"],
)
def test_five_jobs_an_hour_that_fail_by_both_sources_leave_the_gpu_in_service(
    catalog: Catalog, xids: tuple[str, ...]
) -> None:
    engine = a_gpu(catalog)
    events = []
    for number in range(5):
        events += a_job_fails(engine, f"job-{number}", 1 + 720 * number, xids)
    assert {event.verdict for event in events} == {Verdict.ALLOW}
    assert [event for event in events if event.kind in (EventKind.PROMOTED, EventKind.ACTION_PROPOSED)] == []
    assert Handling.RESCHEDULE not in {event.handling for event in events}, "what one job does moves no other"


def test_all_that_programs_do_within_one_hour_leaves_the_gpu_in_service(catalog: Catalog) -> None:
    engine = a_gpu(catalog)
    kinds = (("XID_43",), ("XID_13", "XID_43"), ("XID_45",), ("XID_68",), ("XID_82",), ("XID_109",))
    events = []
    for number in range(5 * len(kinds)):
        events += a_job_fails(engine, f"job-{number}", 1 + 120 * number, kinds[number % len(kinds)])
    assert {event.verdict for event in events} == {Verdict.ALLOW}
    assert engine.view().promotions == ()


def a_gpu(catalog: Catalog) -> Engine:
    engine = begin(catalog, chips=0)
    gpu = seen("gpu0", "GPU-1", "0000:3b:00.0", source="nvidia", vendor="nvidia")
    run(engine, [(0, gpu), (0, back("nvidia")), (0, back("kmsg")), (0, held("gpu0", None))])
    return engine


def a_job_fails(engine: Engine, job: str, at_s: float, xids: tuple[str, ...]) -> list[Event]:
    """It takes the GPU, both sources report each Xid, and it is gone."""
    reported = [
        (at_s + 10, given)
        for code in xids
        for given in (xid(code, evidence={"pid": "7"}), xid(code, "gpu0", source="nvidia"))
    ]
    return run(engine, [(at_s, held("gpu0", job)), *reported, (at_s + 11, held("gpu0", None))])


def test_corrected_errors_that_come_all_the_time_drain_the_node(catalog: Catalog) -> None:
    engine = begin(catalog)
    events = run(engine, [(60 * n, xid("EDAC_CE", "node")) for n in range(1, 11)])
    promoted = [event for event in events if event.kind is EventKind.PROMOTED]
    assert [(event.device, event.rule) for event in promoted] == [("node", "edac-ce-often")]


def test_nonfatal_nvlink_lines_open_nothing_however_many_come(catalog: Catalog) -> None:
    engine = begin(catalog)
    line = "XID_145.Nonfatal.RLW_RXPIPE.0x00000008"
    events = run(engine, [(n, xid(line)) for n in range(1, 600)])
    assert codes(engine) == []
    assert {event.kind for event in events} == {EventKind.NOTICE}


def test_a_switch_fault_that_is_printed_with_both_words_is_two_faults(catalog: Catalog) -> None:
    engine = begin(catalog)
    run(engine, [(1, xid("SXID_20034.Fatal", SWITCH)), (2, xid("SXID_20034.Non-fatal", SWITCH))])
    assert codes(engine) == ["SXID_20034", "SXID_20034.Non-fatal"]


def mlx5(code: str, assertion: str = "once") -> Signal:
    return signal(code, assertion, "0000:d2:00.0", source="kmsg")


def test_a_network_card_that_its_driver_brought_back_is_no_fault_any_more(catalog: Catalog) -> None:
    engine = begin(catalog)
    run(engine, [(1, mlx5("MLX5_HEALTH")), (2, mlx5("MLX5_UNRECOV")), (60, mlx5("MLX5_HEALTH", "recover"))])
    assert codes(engine) == []


def test_a_network_card_that_is_brought_back_a_third_time_in_a_day_takes_no_new_jobs(
    catalog: Catalog,
) -> None:
    engine = begin(catalog)
    hour = 3600
    for start in (1, hour, 2 * hour):
        run(engine, [(start, mlx5("MLX5_HEALTH")), (start + 60, mlx5("MLX5_HEALTH", "recover"))])
    assert device_view(engine, "0000:d2:00.0").verdict is Verdict.NO_NEW_JOBS


@pytest.mark.parametrize(
    ("said", "level"),
    [("MLX5_HEALTH.warning", Level.SUB_HEALTH), ("MLX5_TEMP", Level.PRE_SEPARATE_FAULT)],
)
def test_what_a_network_card_found_is_as_grave_as_the_card_says(
    catalog: Catalog, said: str, level: Level
) -> None:
    engine = begin(catalog)
    run(engine, [(1, mlx5(said)), (2, mlx5("MLX5_UNRECOV"))])
    assert device_view(engine, "0000:d2:00.0").level is level
