"""The BMC's log: each record once, none of before this boot, none lost while nobody looked.

Every event of the log that is a fault has its row, and every row its event.
"""

from collections.abc import Mapping

import pytest

from nodeagent.core.catalog.catalog import Row
from nodeagent.core.model import Kind, Level
from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.bmc.ipmi import Bmc, BmcSession
from nodeagent.drivers.bmc.sel import CODES, LOG_IS_FULL, MAX_RECORDS, EventLog
from nodeagent.emulator.node import EmulatedNode
from tests.shipped import shipped_catalog

BOOT_AGE_S = 1000.0
MEMORY = (0x0C, 0x01)


@pytest.fixture
def log() -> EventLog:
    return begin()


def begin(position: int | None = None) -> EventLog:
    """Of a process that begins 1000 s after the boot."""
    return EventLog(position, lambda: BOOT_AGE_S)


def read(log: EventLog, bmc: Bmc) -> list[int]:
    """The numbers of the records."""
    return [added.record.number for added in log.read(BmcSession(bmc))]


def test_an_empty_log_has_nothing(log: EventLog, bmc: Bmc) -> None:
    assert read(log, bmc) == []
    assert log.position is None


def test_what_is_added_is_read_once(node: EmulatedNode, log: EventLog, bmc: Bmc) -> None:
    read(log, bmc)
    node.bmc.log(*MEMORY, sensor=0x53)
    (added,) = log.read(BmcSession(bmc))
    record = added.record
    assert (record.sensor_type, record.offset, record.sensor, record.is_over) == (0x0C, 1, 0x53, False)
    assert read(log, bmc) == []
    node.bmc.log(*MEMORY)
    node.bmc.log(*MEMORY, is_over=True)
    assert read(log, bmc) == [2, 3]


def test_a_log_that_has_not_changed_costs_one_request(node: EmulatedNode, log: EventLog, bmc: Bmc) -> None:
    node.bmc.log(*MEMORY)
    read(log, bmc)
    before = bmc.requests
    read(log, bmc)
    assert bmc.requests == before + 1


def test_at_the_start_only_records_of_this_boot_count(node: EmulatedNode, log: EventLog, bmc: Bmc) -> None:
    for age_s in (5000, 1020, 980, 10):
        node.bmc.log(*MEMORY, age_s=age_s)
    assert read(log, bmc) == [3, 4]


def test_of_a_long_log_only_its_end_is_read(node: EmulatedNode, log: EventLog, bmc: Bmc) -> None:
    for _ in range(400):
        node.bmc.log(*MEMORY, age_s=5000)
    node.bmc.log(*MEMORY, age_s=10)
    assert read(log, bmc) == [401]
    assert bmc.requests < 10


@pytest.mark.parametrize("offset_s", [-86_400, 86_400, -(10**9)])
def test_a_wrong_clock_of_the_bmc_changes_no_age(
    node: EmulatedNode, log: EventLog, bmc: Bmc, offset_s: int
) -> None:
    node.set_node("bmc_clock_offset_s", offset_s)
    node.bmc.log(*MEMORY, age_s=5000)
    node.bmc.log(*MEMORY, age_s=10)
    assert read(log, bmc) == [2]


def test_a_record_without_a_time_counts_only_if_it_was_seen_to_come(
    node: EmulatedNode, log: EventLog, bmc: Bmc
) -> None:
    node.bmc.log(*MEMORY, at_s=12)
    assert read(log, bmc) == []
    node.bmc.log(*MEMORY, at_s=13)
    assert read(log, bmc) == [2]


def test_another_process_of_this_boot_goes_on_behind_the_last(
    node: EmulatedNode, log: EventLog, bmc: Bmc
) -> None:
    node.bmc.log(*MEMORY, age_s=10)
    assert read(log, bmc) == [1]
    node.bmc.log(*MEMORY)
    again = begin(log.position)
    assert read(again, bmc) == [2]
    assert read(begin(again.position), bmc) == []


def test_a_log_that_was_erased_begins_anew(node: EmulatedNode, log: EventLog, bmc: Bmc) -> None:
    node.bmc.log(*MEMORY, age_s=10)
    node.bmc.log(*MEMORY, age_s=9)
    read(log, bmc)
    node.bmc.erase_log()
    assert read(log, bmc) == []
    node.bmc.log(*MEMORY)
    assert read(log, bmc) == [1]


def test_a_log_that_was_erased_while_nobody_looked_repeats_nothing(
    node: EmulatedNode, log: EventLog, bmc: Bmc
) -> None:
    node.bmc.log(*MEMORY, age_s=10)
    read(log, bmc)
    node.bmc.erase_log()
    node.bmc.log(*MEMORY, age_s=60)
    node.bmc.log(*MEMORY)
    assert read(begin(log.position), bmc) == [2]


def test_more_than_one_reading_takes_are_read_by_the_next(
    node: EmulatedNode, log: EventLog, bmc: Bmc
) -> None:
    node.bmc.log(*MEMORY)
    read(log, bmc)
    for _ in range(MAX_RECORDS + 5):
        node.bmc.log(*MEMORY)
    assert len(read(log, bmc)) == MAX_RECORDS
    assert len(read(log, bmc)) == 5
    assert read(log, bmc) == []


def test_a_full_log_is_known(node: EmulatedNode, log: EventLog, bmc: Bmc) -> None:
    states = []
    for overflow in (0, 1):
        node.set_node("sel_overflow", overflow)
        read(log, bmc)
        states.append(log.info is not None and log.info.is_full)
    assert states == [False, True]


@pytest.mark.parametrize("mode", ["garbage", "truncated"])
def test_nonsense_moves_nothing(node: EmulatedNode, log: EventLog, bmc: Bmc, mode: str) -> None:
    node.bmc.log(*MEMORY, age_s=10)
    read(log, bmc)
    before = log.position
    node.bmc.log(*MEMORY)
    node.bmc.answer(mode)
    with pytest.raises(CallFailed):
        read(log, bmc)
    assert log.position == before
    node.bmc.answer("well")
    assert read(log, bmc) == [2]


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
