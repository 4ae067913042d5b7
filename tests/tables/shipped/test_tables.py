"""What the shipped tables say, where others rely on it."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Catalog, ClearOn, Row
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.catalog.settings import Settings
from nodeagent.core.model import Affects, CountedBy, Kind, Level, Recovery
from nodeagent.tables.levels import is_stricter
from nodeagent.tables.load import load_catalog

REPOSITORY = Path(__file__).parents[3]

XID_LEVELS = {
    "XID_13": Level.RESTART_BUSINESS,
    "XID_31": Level.RESTART_BUSINESS,
    "XID_48": Level.RESTART_NPU,
    "XID_63": Level.FREE_RESTART_NPU,
    "XID_64": Level.RESTART_NPU,
    "XID_74": Level.RESTART_NPU,
    "XID_79": Level.SEPARATE_NPU,
    "XID_94": Level.RESTART_BUSINESS,
    "XID_95": Level.RESTART_NPU,
    "XID_119": Level.RESTART_NPU,
    "XID_154": Level.SUB_HEALTH,
}
OF_PROGRAMS = (8, 11, 13, 25, 31, 32, 43, 44, 45, 69, 80, 109, 137, 170)
OF_COPIES = (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))
OF_MEDIA = (60, 68, 82, 83, 84, 86, 88, 89, *range(96, 106), 139)
AGENT_CODES = {
    "driver_unresponsive",
    "worker_crashed",
    "log_gap",
    "device_lost",
    "fewer_chips_than_expected",
    "more_chips_than_expected",
    "store_damaged",
    "configuration_rejected",
    "tables_rejected",
    "store_degraded",
    "too_many_faults",
    "private_mount_namespace",
    "process_unkillable",
    "supervisor_unnamed",
    "clock_below_peers",
    "reset_failed",
    "reset_limit_reached",
}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    loaded = load_catalog([REPOSITORY / "fault_codes"], Settings())
    assert loaded.warnings == ()
    return loaded.catalog


def test_every_shipped_row_says_its_level() -> None:
    tables = [tomllib.loads(file.read_text()) for file in (REPOSITORY / "fault_codes").glob("*.toml")]
    rows = {code: row for table in tables for code, row in table.get("codes", {}).items()}
    assert len(rows) > 500
    assert [code for code, row in rows.items() if "level" not in row] == []


def test_xids_have_the_levels_of_the_vendors_catalogue(catalog: Catalog) -> None:
    assert {code: catalog.rows[code].level for code in XID_LEVELS} == XID_LEVELS


def test_what_the_application_causes_is_told_so(catalog: Catalog) -> None:
    """NVIDIA says of these Xids to restart the application, or that they are its end. A program that hangs is
    mostly at fault on AMD's GPUs too.
    """
    induced = {row.code for row in catalog.rows.values() if row.user_induced and row.vendor != "ascend"}
    xids = {f"XID_{number}" for number in (*OF_PROGRAMS, *OF_COPIES, *OF_MEDIA)}
    others = {
        "AMDGPU_RING_TIMEOUT",
        "AMDGPU_VM_FAULT",
        "OOM",
        "OOM.invoked",
        "OOM_CGROUP",
        "NCCL_SEGV",
        "NV_PEERMEM",
    }
    assert induced == xids | others


@pytest.mark.parametrize("code", ["worker_crashed", "driver_unresponsive"])
def test_what_befalls_a_whole_source_is_a_fault_of_its_own_for_each_source(
    code: str, catalog: Catalog
) -> None:
    rows = [catalog.row(f"{code}.{source}") for source in ("ascend", "nvidia")]
    assert [row and row.code for row in rows] == [f"{code}.ascend", f"{code}.nvidia"]
    assert {row and row.clear_on for row in rows} == {catalog.rows[canonical(code)].clear_on}


def numbered(catalog: Catalog, prefix: str) -> list[Row]:
    return [row for row in catalog.rows.values() if re.fullmatch(rf"{prefix}_\d+", row.code)]


def test_every_xid_of_the_catalogue_has_its_level(catalog: Catalog) -> None:
    rows = numbered(catalog, "XID")
    assert {row.code for row in rows} == {f"XID_{number}" for number in range(1, 177)}
    assert Counter(row.level for row in rows) == {
        Level.NOT_HANDLE: 15,
        Level.SUB_HEALTH: 79,
        Level.RESTART_BUSINESS: 55,
        Level.FREE_RESTART_NPU: 3,
        Level.RESTART_NPU: 18,
        Level.PRE_SEPARATE_NPU: 1,
        Level.SEPARATE_NPU: 5,
    }


def test_every_sxid_of_the_catalogue_speaks_for_the_node(catalog: Catalog) -> None:
    rows = numbered(catalog, "SXID")
    assert len(rows) == 398
    assert {(row.kind, row.affects) for row in rows} == {(Kind.LINK, Affects.NODE)}
    assert Counter(row.level for row in rows) == {
        Level.NOT_HANDLE: 158,
        Level.SUB_HEALTH: 49,
        Level.PRE_SEPARATE_FAULT: 190,
        Level.SEPARATE_FAULT: 1,
    }


@pytest.mark.parametrize(
    ("code", "level"),
    [
        ("SXID_20001", Level.NOT_HANDLE),
        ("SXID_20001.Non-fatal", Level.NOT_HANDLE),
        ("SXID_20001.Fatal", Level.PRE_SEPARATE_FAULT),
        ("SXID_20009.Non-fatal", Level.SUB_HEALTH),
        ("SXID_20009.Fatal", Level.PRE_SEPARATE_FAULT),
        ("SXID_20034.Fatal", Level.PRE_SEPARATE_FAULT),
        ("SXID_20034.Non-fatal", Level.SUB_HEALTH),
        ("SXID_12028.Non-fatal", Level.PRE_SEPARATE_FAULT),
        ("SXID_10006.Fatal", Level.SEPARATE_FAULT),
        ("SXID_99999", Level.SUB_HEALTH),
        ("SXID_99999.Fatal", Level.PRE_SEPARATE_FAULT),
    ],
)
def test_the_word_that_the_switch_driver_prints_counts(catalog: Catalog, code: str, level: Level) -> None:
    row = catalog.row(code)
    assert row is not None
    assert row.level == level


def test_what_a_switch_prints_as_fatal_is_closed_by_no_quiet_time(catalog: Catalog) -> None:
    row = catalog.row("SXID_20001.Fatal")
    assert row is not None
    assert row.clear_on == ClearOn(reboot=True, operator=True)


@pytest.mark.parametrize(
    ("code", "level", "notice"),
    [
        ("XID_144.Nonfatal.SAW_MVB.0x00000001", Level.NOT_HANDLE, True),
        ("XID_144.Nonfatal.SAW_MVB.0x00000040", Level.SUB_HEALTH, True),
        ("XID_145.Nonfatal.RLW_REMAP.0x00000001", Level.SUB_HEALTH, True),
        ("XID_149.Nonfatal.NETIR_BER_EVENT.0x00000002", Level.SUB_HEALTH, True),
        ("XID_147.Nonfatal.", Level.SUB_HEALTH, True),
        ("XID_144.Fatal.SAW_MVB.0x00000002", Level.RESTART_NPU, False),
        ("XID_145.Fatal.RLW_RXPIPE.0x00000001", Level.RESTART_NPU, False),
        ("XID_146.Fatal.NEW_UNIT.0x00000001", Level.RESTART_NPU, False),
        ("XID_149.Fatal.LINK_DOWN.25", Level.RESTART_NPU, False),
        ("XID_149.Fatal.LINK_DOWN.0f", Level.RESTART_NPU, False),
        ("XID_149.Fatal.LINK_DOWN.26", Level.NOT_HANDLE, False),
        ("XID_149.Fatal.LINK_DOWN.3f", Level.RESTART_NPU, False),
        ("XID_150", Level.SUB_HEALTH, False),
    ],
)
def test_nvlink_sub_codes_are_graded_by_word_unit_and_status(
    catalog: Catalog, code: str, level: Level, notice: bool
) -> None:
    row = catalog.row(code)
    assert row is not None
    assert (row.level, row.notice, row.code.endswith("*")) == (level, notice, False)


def test_every_link_down_reason_of_nvidias_table_has_its_row(catalog: Catalog) -> None:
    reasons = {int(key[-2:], 16) for key in catalog.rows if key.startswith("XID_149.FATAL.LINK_DOWN.")}
    assert reasons == {0, 1, 2, 4, 10, 15, 16, 17, 18, 21, 22, 32, 33, 34, 35, 36, 37, 38, 40, 42, 43}


def test_xid_154_is_graded_by_what_the_driver_asks_for(catalog: Catalog) -> None:
    rows = [catalog.row(f"XID_154.{target}") for target in range(9)]
    assert [row and row.level for row in rows] == [
        Level.NOT_HANDLE,
        Level.RESTART_NPU,
        Level.SEPARATE_NPU,
        Level.SUB_HEALTH,
        Level.FREE_RESTART_NPU,
        Level.PRE_SEPARATE_NPU,
        Level.RESTART_NPU,
        Level.SEPARATE_NPU,
        Level.SUB_HEALTH,
    ]


def test_a_channel_removed_after_another_xid_needs_no_handling(catalog: Catalog) -> None:
    alone, follows = catalog.row("XID_45"), catalog.row("XID_45.follows")
    assert alone
    assert follows
    assert (alone.level, follows.level) == (Level.RESTART_BUSINESS, Level.NOT_HANDLE)


def test_what_needs_a_new_part_waits_for_a_person(catalog: Catalog) -> None:
    assert catalog.rows["XID_168"].clear_on == ClearOn(operator=True)


def test_only_a_panic_stops_the_node_and_what_can_recover_says_so(catalog: Catalog) -> None:
    linux = [row for row in catalog.rows.values() if row.vendor == "linux"]
    kernel = [row for row in linux if "/ports.toml:" not in row.file]
    assert [row.code for row in kernel if row.level is Level.SEPARATE_FAULT] == ["PANIC"]
    assert {row.code for row in kernel if row.clear_on.recover} == {
        "BOND_DOWN",
        "CEPH_NORESP",
        "CPU_THROTTLED",
        "DIMM_CE_RATE",
        "LUSTRE_NORESP",
        "MLX5_CABLE",
        "MLX5_HEALTH",
        "MLX5_LINK_DOWN",
        "MLX5_POWER",
        "NFS_NORESP",
        "NIC_LINK_DOWN",
        "NIC_PCIE_SPEED",
        "NIC_PCIE_WIDTH",
        "NPU_PCIE_WIDTH",
        "PCIE_SLOT_DOWN",
        "PROCESS_BLOCKED",
        "SERVICE_DOWN",
        "SERVICE_DOWN.containerd",
        "SERVICE_DOWN.crio",
        "SERVICE_DOWN.docker",
        "SERVICE_DOWN.isulad",
        "SERVICE_DOWN.nvidia-imex",
        "SERVICE_DOWN.nvidia-persistenced",
    }


def test_an_xid_without_a_row_is_subhealth_by_its_family(catalog: Catalog) -> None:
    row = catalog.row("XID_999")
    assert row is not None
    assert (row.code, row.level) == ("XID_*", Level.SUB_HEALTH)


def test_a_fatal_pcie_error_drains_the_chips_behind_the_link(catalog: Catalog) -> None:
    row = catalog.rows["AER_FATAL"]
    assert (row.kind, row.level, row.affects) == (Kind.LINK, Level.PRE_SEPARATE_FAULT, Affects.CHIPS_BEHIND)


def test_every_fault_of_the_agent_itself_has_a_row(catalog: Catalog) -> None:
    assert {row.code for row in catalog.rows.values() if row.vendor == "nodeagent"} == AGENT_CODES


def test_not_being_able_to_observe_never_keeps_jobs_away(catalog: Catalog) -> None:
    codes = ("DRIVER_UNRESPONSIVE", "WORKER_CRASHED", "LOG_GAP", "STORE_DEGRADED")
    refused = ("CONFIGURATION_REJECTED", "TABLES_REJECTED")
    assert {catalog.rows[code].level for code in (*codes, *refused)} == {Level.NOT_HANDLE}


def test_a_failed_reset_waits_for_a_person(catalog: Catalog) -> None:
    row = catalog.rows["RESET_FAILED"]
    assert (row.level, row.clear_on) == (Level.SEPARATE_NPU, ClearOn(operator=True))


def test_every_row_tells_what_it_means_and_what_to_do(catalog: Catalog) -> None:
    assert [row.code for row in catalog.rows.values() if not (row.description and row.action)] == []


def test_any_repeated_fault_from_restart_request_on_ends_self_healing(catalog: Catalog) -> None:
    rule = next(rule for rule in catalog.frequency if rule.codes == ("*",))
    assert (rule.times, rule.time_window_ns, rule.level, rule.at_least, rule.release_ns) == (
        3,
        86_400 * 10**9,
        Level.MANUALLY_SEPARATE_NPU,
        Level.RESTART_REQUEST,
        None,
    )


def test_every_xid_from_restart_request_on_counts_a_burst_of_lines_once(catalog: Catalog) -> None:
    rule = next(rule for rule in catalog.frequency if rule.id == "xid-repeat")
    graver = {
        row.code
        for row in numbered(catalog, "XID")
        if row.level not in (Level.NOT_HANDLE, Level.SUB_HEALTH)
        if not row.user_induced and row.recovery is not Recovery.NONE
    }
    by_registers = {f"XID_74.{meaning}" for meaning in ("parity", "hardware", "signal", "secondary")}
    assert set(rule.codes) == graver | by_registers
    assert rule.burst_ns == 180 * 10**9


def test_no_xid_of_a_program_counts_towards_repetition(catalog: Catalog) -> None:
    rules = {rule.id: rule for rule in catalog.frequency}
    rule, at_one_place = rules["xid-of-programs"], rules["xid-at-one-place"]
    induced = [row for row in numbered(catalog, "XID") if row.user_induced]
    assert {*rule.codes, *at_one_place.codes} == {row.code for row in induced}
    assert rule.at_least is not None
    assert all(is_stricter(rule.at_least, row.level) for row in induced)
    assert (rule.counted_by, at_one_place.counted_by) == (CountedBy.JOB, CountedBy.PLACE)
    assert at_one_place.level is Level.SUB_HEALTH, "a user can have his programs fail at one place"


def test_a_killed_process_and_what_a_switch_has_corrected_are_only_told(catalog: Catalog) -> None:
    rows = [catalog.row(code) for code in ("XID_174", "SXID_CORRECTABLE.12021")]
    assert [(row.level, row.notice) for row in rows if row] == [(Level.NOT_HANDLE, True)] * 2


def test_the_newest_xids_of_the_open_driver_have_their_levels(catalog: Catalog) -> None:
    """Its nverror.h has their names; at 175 its kernel_gsp.c marks the GPU for a reset."""
    assert [catalog.rows[code].level for code in ("XID_175", "XID_176")] == [
        Level.RESTART_NPU,
        Level.SUB_HEALTH,
    ]
