"""Every event of the log that is a fault has its row, and every row its event."""

from collections.abc import Mapping

import pytest

from nodeagent.core.catalog.catalog import Row
from nodeagent.core.model import Kind, Level
from nodeagent.drivers.bmc.sel import CODES, LOG_IS_FULL
from tests.shipped import shipped_catalog


@pytest.fixture(scope="module")
def rows() -> Mapping[str, Row]:
    shipped = shipped_catalog().rows
    return {code: row for code, row in shipped.items() if row.file.partition(":")[0].endswith("bmc.toml")}


def test_events_and_rows_are_the_same_codes(rows: Mapping[str, Row]) -> None:
    assert rows.keys() == {*CODES.values(), LOG_IS_FULL}


def test_no_record_of_the_log_isolates_a_node(rows: Mapping[str, Row]) -> None:
    levels = {Level.NOT_HANDLE, Level.SUB_HEALTH, Level.PRE_SEPARATE_FAULT}
    assert {(row.kind, row.level in levels) for row in rows.values()} == {(Kind.HOST, True)}


def test_each_sensor_has_a_fault_of_its_own(rows: Mapping[str, Row]) -> None:
    assert [
        code for code, row in rows.items() if not row.notice and dict(row.levels) != {"*": row.level}
    ] == []
