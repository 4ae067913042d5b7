"""The rules for network ports: down for minutes, down again and again, and counters, as others judge them."""

from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import SECOND_NS, Settings
from nodeagent.core.model import Affects, Kind, Level
from nodeagent.tables.load import load_catalog
from tests.core.build import back, begin, order, run, seen, signal, stands, wait

TABLES = Path(__file__).parents[3] / "fault_codes"

LIMITS = {
    "PORT_BUFFER_OVERRUN": (1, 3600, Level.PRE_SEPARATE_FAULT),
    "PORT_INTEGRITY_ERRORS": (1, 3600, Level.PRE_SEPARATE_FAULT),
    "PORT_SYMBOL_ERRORS": (121, 3600, Level.PRE_SEPARATE_FAULT),
    "PORT_ERROR_RECOVERY": (6, 60, Level.SUB_HEALTH),
    "PORT_SLOW_RESTARTS": (600, 60, Level.SUB_HEALTH),
    "PORT_RECEIVER_NOT_READY": (600, 60, Level.SUB_HEALTH),
    "PORT_LINK_LOST": (1, 3600, Level.SUB_HEALTH),
    "PORT_FLAPPING": (10, 600, Level.PRE_SEPARATE_FAULT),
    "ETHERNET_PORT_FLAPPING": (10, 600, Level.SUB_HEALTH),
}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog([TABLES], Settings()).catalog


def test_counters_have_the_limits_of_those_who_watch_many_cards(catalog: Catalog) -> None:
    assert {
        rule.code: (rule.increase, rule.time_window_ns // SECOND_NS, catalog.rows[rule.code].level)
        for rule in catalog.counter
        if rule.code in LIMITS
    } == LIMITS


def test_a_fault_of_a_port_speaks_for_the_node(catalog: Catalog) -> None:
    ports = [row for row in catalog.rows.values() if "/ports.toml:" in row.file and row.kind is Kind.LINK]
    assert len(ports) == 15
    assert {row.affects for row in ports} == {Affects.NODE}


def test_a_port_that_was_down_three_times_in_twelve_hours_is_out_until_a_person_releases_it(
    catalog: Catalog,
) -> None:
    """Less than 25 seconds do not count; the node takes no new jobs for good."""
    engine = begin(catalog, chips=0)
    port = seen("eth0", "", "0000:03:00.0", kind=Kind.LINK, source="link")
    run(engine, [(0, port), (0, back("link"))])
    down, up = (signal("PORT_DOWN", assertion, "eth0", source="link") for assertion in ("occur", "recover"))
    for at_s, lasts_s in ((100, 24), (200, 30), (14_000, 26), (43_000, 30)):
        assert stands(engine, "node")[1] == "ALLOW"
        run(engine, [(at_s, down), (at_s + lasts_s, up)])
        wait(engine, at_s + lasts_s + 1)
    wait(engine, 30 * 86_400)
    assert stands(engine, "node")[:2] == (Level.PRE_SEPARATE_FAULT, "NO_NEW_JOBS")
    run(engine, [(31 * 86_400, order("release", "eth0"))])
    assert stands(engine, "node")[1] == "ALLOW"


def test_what_the_kernel_logs_of_a_lost_link_goes_with_the_port_that_is_down(catalog: Catalog) -> None:
    engine = begin(catalog, chips=0)
    port = seen("eth0", "", "0000:03:00.0", kind=Kind.LINK, source="link")
    line = signal("MLX5_LINK_DOWN", "once", "0000:03:00.0", source="kmsg")
    run(engine, [(0, port), (0, back("link")), (1, line)])
    run(engine, [(2, signal("PORT_DOWN", device="eth0", source="link"))])
    assert [each.code for each in engine.view().conditions] == ["PORT_DOWN"]
