"""The BMC of an emulated node, as a person changes it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.cli.local.emulator import configuration_of
from nodeagent.emulator.bmc import BmcFault
from nodeagent.emulator.layout import LIMITS
from nodeagent.emulator.node import EmulatedNode
from tests.emulator.served import say, serving


@pytest.fixture
def served(tmp_path: Path) -> Iterator[EmulatedNode]:
    with serving(tmp_path / "node", "1x910B") as node:
        yield node


def test_a_fault_is_listed_until_it_is_cleared(served: EmulatedNode) -> None:
    assert say(served, "bmc-raise", "0000001D", "--part-type", "1", "--part", "7").exit_code == 0
    say(served, "bmc-raise", "01000017")
    assert served.bmc.faults() == [BmcFault(0x1D, part_type=1, part=7), BmcFault(0x01000017)]
    assert "0000001D" in say(served, "show").output
    say(served, "bmc-clear", "0000001D")
    assert served.bmc.faults() == [BmcFault(0x01000017)]
    say(served, "bmc-clear", "all")
    assert served.bmc.faults() == []


def test_what_is_no_code_is_refused(served: EmulatedNode) -> None:
    refused = say(served, "bmc-raise", "CPU")
    assert (refused.exit_code, served.bmc.faults()) == (1, [])
    assert "hexadecimal digits such as 80E01801 are right, not 'CPU'" in refused.output


def test_a_record_is_logged_with_the_number_that_is_answered(served: EmulatedNode) -> None:
    assert say(served, "bmc-log", "8", "1", "--sensor", "74").output == "record 1\n"
    assert say(served, "bmc-log", "8", "1", "--sensor", "74", "--over").output == "record 2\n"
    records = served.state.sel[:2]
    assert [(one.sensor_type, one.sensor, one.event_type) for one in records] == [
        (8, 74, 0x6F),
        (8, 74, 0xEF),
    ]
    say(served, "bmc-erase")
    assert say(served, "bmc-log", "8", "1").output == "record 1\n"


def test_a_log_without_room_refuses_and_has_lost_a_record(served: EmulatedNode) -> None:
    for _ in range(LIMITS["SEL_RECORDS"]):
        served.bmc.log(8, 1)
    assert "records are in the log already: erase it" in say(served, "bmc-log", "8", "1").output
    assert served.state.node.sel_overflow == 1


def test_the_vendor_is_huawei_only_beside_npus(tmp_path: Path) -> None:
    vendors = []
    for description in ("1x910B", "1xH100", "1x910B+1xH100"):
        with EmulatedNode.create(tmp_path / description, description) as node:
            vendors.append(node.state.node.bmc_manufacturer)
    assert vendors == [2011, 10876, 2011]


def test_its_configuration_asks_it_each_second(served: EmulatedNode) -> None:
    assert configuration_of(served).splitlines()[:3] == [
        "[drivers.bmc]",
        f'library = "{served.ipmi}"',
        'poll_interval = "1s"',
    ]
