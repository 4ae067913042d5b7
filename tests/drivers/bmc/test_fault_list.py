"""The BMC's list of faults is read whole, or it is said that it was not."""

from collections.abc import Sequence

import pytest

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.bmc import fault_list
from nodeagent.drivers.bmc.fault_list import FaultList
from nodeagent.drivers.bmc.ipmi import Bmc, BmcSession, IpmiRefused
from nodeagent.emulator.bmc import BmcFault
from nodeagent.emulator.node import EmulatedNode


def read(bmc: Bmc) -> FaultList:
    return fault_list.read(BmcSession(bmc))


def stand(node: EmulatedNode, codes: Sequence[int]) -> list[str]:
    for code in codes:
        node.bmc.raise_fault(BmcFault(code))
    return [f"{code:08X}" for code in sorted(codes)]


def shown(faults: FaultList) -> list[str]:
    return [active.code for active in faults.active]


def test_no_fault_is_an_empty_list_and_whole(bmc: Bmc) -> None:
    assert read(bmc) == FaultList((), complete=True)


def test_a_fault_says_severity_and_part(node: EmulatedNode, bmc: Bmc) -> None:
    node.bmc.raise_fault(BmcFault(0x01000017, severity=3, part_type=1, part=7))
    (active,) = read(bmc).active
    assert (active.code, active.evidence) == ("01000017", {"severity": "3", "parts": "type 1 number 7"})


def test_one_code_on_two_parts_is_one_fault_that_names_both(node: EmulatedNode, bmc: Bmc) -> None:
    for part in (4, 7):
        node.bmc.raise_fault(BmcFault(0x01000017, severity=part, part_type=1, part=part))
    (active,) = read(bmc).active
    assert active.evidence == {"severity": "7", "parts": "type 1 number 4, type 1 number 7"}


@pytest.mark.parametrize("count", [10, 11, 59])
def test_a_list_of_several_parts_is_read_to_its_end(node: EmulatedNode, bmc: Bmc, count: int) -> None:
    codes = stand(node, range(1, count + 1))
    faults = read(bmc)
    assert (shown(faults), faults.complete) == (codes, True)


def test_a_list_that_changed_between_its_parts_is_read_again(node: EmulatedNode, bmc: Bmc) -> None:
    codes = stand(node, range(1, 26))
    # The first of the list moves behind the others once, so that the second part lacks its own first.
    node.set_node("bmc_rotations", 1)
    faults = read(bmc)
    assert (shown(faults), faults.complete) == (codes, True)


def test_a_list_that_never_holds_still_is_not_whole(node: EmulatedNode, bmc: Bmc) -> None:
    codes = stand(node, range(1, 26))
    node.set_node("bmc_rotations", 1000)
    faults = read(bmc)
    assert not faults.complete
    assert set(shown(faults)) <= set(codes)


def test_a_list_of_more_than_a_hundred_parts_is_not_whole(node: EmulatedNode, bmc: Bmc) -> None:
    stand(node, range(1, 120))
    node.set_node("bmc_faults_per_page", 1)
    faults = read(bmc)
    assert (len(faults.active), faults.complete) == (100, False)


@pytest.mark.parametrize("mode", ["garbage", "truncated"])
def test_an_answer_that_makes_no_sense_is_no_empty_list(node: EmulatedNode, bmc: Bmc, mode: str) -> None:
    stand(node, [0x1D])
    node.bmc.answer(mode)
    with pytest.raises(CallFailed, match="list of faults: "):
        read(bmc)


@pytest.mark.parametrize("total", [1, 3])
def test_a_number_of_faults_that_is_not_theirs_is_refused(node: EmulatedNode, bmc: Bmc, total: int) -> None:
    stand(node, [0x1D, 0x1F])
    node.set_node("bmc_total_lie", total)
    with pytest.raises(CallFailed, match=f"the BMC gave 2 faults of {total}"):
        read(bmc)


def test_a_bmc_without_a_list_does_not_know_the_command(node: EmulatedNode, bmc: Bmc) -> None:
    node.set_node("bmc_has_list", 0)
    with pytest.raises(IpmiRefused) as refused:
        read(bmc)
    assert refused.value.code == 0xC1
