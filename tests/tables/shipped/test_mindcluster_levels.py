"""Every code of MindCluster's own lists has MindCluster's level in the shipped tables."""

import json

import pytest

from nodeagent.core.catalog.catalog import Catalog, ClearOn
from nodeagent.core.model import Affects, Kind
from tests.shipped import shipped_catalog
from tests.tables.shipped.mindcluster import (
    KINDS,
    TESTS,
)

SECOND_NS = 1_000_000_000


TABLES = {
    Kind.CHIP: "/ascend.toml:",
    Kind.UNIFIEDBUS: "/unifiedbus.toml:",
    Kind.NODE: "/node.toml:",
    Kind.PUBLIC: "/public.toml:",
}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return shipped_catalog()


@pytest.mark.parametrize("kind", KINDS)
def test_every_code_of_the_vendors_lists_has_its_level_and_kind(catalog: Catalog, kind: Kind) -> None:
    count, levels = KINDS[kind]
    assert len(levels) == count
    rows = {code: catalog.row(code) for code in levels}
    assert {code: (row.level, row.kind) if row else None for code, row in rows.items()} == {
        code: (level, kind) for code, level in levels.items()
    }


@pytest.mark.parametrize("kind", KINDS)
def test_codes_print_as_the_vendor_writes_them_leading_zeros_included(catalog: Catalog, kind: Kind) -> None:
    _, levels = KINDS[kind]
    rows = [row for row in catalog.rows.values() if TABLES[kind] in row.file]
    assert {row.code for row in rows} == set(levels)


def test_nine_digit_codes_are_found_by_value(catalog: Catalog) -> None:
    found = {code: row.code for code in ("20001002", "020001002") if (row := catalog.row(code)) is not None}
    assert found == {"20001002": "020001002", "020001002": "020001002"}


def test_a_switch_code_is_found_in_any_case_and_affects_the_node(catalog: Catalog) -> None:
    row = catalog.row("[0X08520003,NA,l2,NA]")
    assert row is not None
    assert (row.code, row.affects) == ("[0x08520003,na,L2,na]", Affects.NODE)


def test_bad_input_to_the_cores_is_the_applications_fault(catalog: Catalog) -> None:
    induced = {row.code for row in catalog.rows.values() if row.user_induced and row.vendor == "ascend"}
    assert {code for code in induced if not code.startswith("ASC_")} == {"80C98002", "80CB8002"}


def test_a_link_is_not_mended_by_resetting_the_chip(catalog: Catalog) -> None:
    row = catalog.row("81078603")
    assert row is not None
    assert row.clear_on == ClearOn(recover=True, reboot=True)


def test_the_vendors_frequency_rules_are_shipped(catalog: Catalog) -> None:
    customization = json.loads((TESTS / "fixtures/mindcluster/faultCustomization.json").read_text())
    ascend = [rule for rule in catalog.frequency if rule.id.startswith("ascend-")]
    assert [
        (rule.codes, rule.times, rule.time_window_ns, rule.level, rule.release_ns) for rule in ascend
    ] == [
        (
            tuple(given["EventId"]),
            given["Times"],
            given["TimeWindow"] * SECOND_NS,
            given["FaultHandling"],
            given["ReleaseTimeWindow"] * SECOND_NS if "ReleaseTimeWindow" in given else None,
        )
        for given in customization["FaultFrequency"]
    ]


def test_a_link_that_stays_down_takes_no_new_jobs(catalog: Catalog) -> None:
    rule = next(rule for rule in catalog.duration if rule.codes == ("81078603",))
    assert (rule.fault_timeout_ns, rule.recover_timeout_ns, rule.level) == (
        20 * SECOND_NS,
        60 * SECOND_NS,
        "PreSeparateNPU",
    )


def test_cores_that_fail_with_the_memory_are_its_companions(catalog: Catalog) -> None:
    rules = [rule for rule in catalog.relation if "80E01801" in rule.with_codes]
    assert [(rule.code, rule.within_ns, rule.same, rule.then) for rule in rules] == [
        ("80C98009", 5 * SECOND_NS, "device", "absorb"),
        ("80CB8009", 5 * SECOND_NS, "device", "absorb"),
    ]
