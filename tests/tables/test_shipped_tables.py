"""What the shipped tables say, where others rely on it."""

from pathlib import Path

import pytest

from nodeagent.core.catalog import Catalog, ClearOn, Settings
from nodeagent.core.model import Affects, Kind, Level
from nodeagent.tables.load import load_catalog

REPOSITORY = Path(__file__).parents[2]

XID_LEVELS = {
    "XID_13": Level.RESTART_BUSINESS,
    "XID_31": Level.RESTART_BUSINESS,
    "XID_48": Level.RESTART_NPU,
    "XID_63": Level.FREE_RESTART_NPU,
    "XID_64": Level.SEPARATE_NPU,
    "XID_74": Level.RESTART_NPU,
    "XID_79": Level.SEPARATE_NPU,
    "XID_94": Level.RESTART_BUSINESS,
    "XID_95": Level.RESTART_NPU,
    "XID_119": Level.RESTART_NPU,
    "XID_154": Level.SUB_HEALTH,
}
AGENT_CODES = {
    "driver_unresponsive",
    "worker_crashed",
    "log_gap",
    "device_lost",
    "store_degraded",
    "too_many_faults",
    "reset_failed",
    "reset_limit_reached",
}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    loaded = load_catalog([REPOSITORY / "fault_codes"], Settings())
    assert loaded.warnings == ()
    return loaded.catalog


def test_xids_have_the_levels_of_the_vendors_catalogue(catalog: Catalog) -> None:
    assert {code: catalog.rows[code].level for code in XID_LEVELS} == XID_LEVELS


def test_only_the_xids_of_programs_and_out_of_memory_are_user_induced(catalog: Catalog) -> None:
    induced = {row.code for row in catalog.rows.values() if row.user_induced and row.vendor != "ascend"}
    assert induced == {"XID_13", "XID_31", "OOM", "OOM_CGROUP"}


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
    assert {catalog.rows[code].level for code in codes} == {Level.NOT_HANDLE}


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
    assert set(rule.codes) == set(XID_LEVELS) - {"XID_154"}
    assert rule.burst_ns == 180 * 10**9
