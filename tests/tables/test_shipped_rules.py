"""What the shipped rules make of faults that come together, in the core that judges them."""

from pathlib import Path

import pytest

from nodeagent.core.catalog import Catalog, Settings
from nodeagent.core.engine import Engine
from nodeagent.core.model import EventKind, Handling, Level, Verdict
from nodeagent.tables.load import load_catalog
from tests.core.build import back, begin, condition, device_view, held, open_codes, run, seen, xid

REPOSITORY = Path(__file__).parents[2]
GPU, SWITCH = "npu0", "0000:05:00.0"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog([REPOSITORY / "fault_codes"], Settings()).catalog


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


@pytest.mark.parametrize("code", ["XID_8", "XID_13", "XID_31", "XID_43", "XID_44", "XID_45", "XID_69"])
@pytest.mark.parametrize("job", ["job", None], ids=["held", "free"])
def test_programs_that_fail_one_after_the_other_leave_the_gpu_in_service(
    catalog: Catalog, code: str, job: str | None
) -> None:
    engine = begin(catalog, chips=0)
    run(engine, [(0, seen("gpu0", "GPU-1", source="nvidia")), (0, back("nvidia")), (0, held("gpu0", job))])
    for number in range(1, 7):
        run(engine, [(240 * number, xid(code, "gpu0", source="nvidia"))])
    assert engine.view().promotions == ()
    assert (device_view(engine, "gpu0").verdict, device_view(engine, "gpu0").handling) == (
        Verdict.ALLOW,
        Handling.RESCHEDULE,
    )


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
