"""One request and its answer: none is taken for another, and no wait is without limit."""

import time
from pathlib import Path

import pytest

from nodeagent.drivers.api import CallFailed, Unavailable
from nodeagent.drivers.bmc.ipmi import Bmc, BmcSession, IpmiRefused, IpmiTimeout
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.bmc.conftest import DEVICE

GET_ID = (6, 0x01)
GET_TIME = (0x0A, 0x48)
OTHER = (0x2C, 0x3E)


def ask(bmc: Bmc, command: tuple[int, int], limit_s: float = 10.0) -> bytes:
    return bmc.ask("a test", *command, until_s=time.monotonic() + limit_s)


def test_the_id_names_the_vendor(bmc: Bmc) -> None:
    assert int.from_bytes(ask(bmc, GET_ID)[6:9], "little") == 2011


def test_an_answer_that_comes_late_is_not_taken_for_that_to_the_next_request(
    node: EmulatedNode, bmc: Bmc
) -> None:
    node.set_node("bmc_delay_ms", 300)
    with pytest.raises(IpmiTimeout, match="a test: the BMC does not answer"):
        ask(bmc, GET_ID, limit_s=0.05)
    node.set_node("bmc_delay_ms", 0)
    assert len(ask(bmc, GET_TIME)) == 4
    assert bmc.late_answers == 1


def test_the_answer_to_the_same_request_of_before_is_late_too(node: EmulatedNode, bmc: Bmc) -> None:
    node.set_node("bmc_delay_ms", 300)
    node.set_node("bmc_manufacturer", 1)
    with pytest.raises(IpmiTimeout):
        ask(bmc, GET_ID, limit_s=0.05)
    node.set_node("bmc_delay_ms", 0)
    node.set_node("bmc_manufacturer", 2)
    assert ask(bmc, GET_ID)[6] == 2


def test_what_the_bmc_still_owes_is_gone_when_it_is_opened_anew(node: EmulatedNode, bmc: Bmc) -> None:
    node.set_node("bmc_delay_ms", 300)
    with pytest.raises(IpmiTimeout):
        ask(bmc, GET_ID, limit_s=0.05)
    node.set_node("bmc_delay_ms", 0)
    bmc.close()
    bmc.open()
    assert len(ask(bmc, GET_TIME)) == 4
    assert bmc.late_answers == 0


def test_a_refusal_is_named(bmc: Bmc) -> None:
    with pytest.raises(
        IpmiRefused, match=r"the BMC does not know the command \(completion code 0xC1\)"
    ) as refused:
        ask(bmc, OTHER)
    assert refused.value.code == 0xC1


def test_a_busy_bmc_is_asked_again(node: EmulatedNode, bmc: Bmc) -> None:
    node.bmc.answer("busy", times=2)
    assert len(BmcSession(bmc).ask("a test", *GET_ID)) == 11


def test_a_bmc_that_stays_busy_has_failed(node: EmulatedNode, bmc: Bmc) -> None:
    node.bmc.answer("busy")
    with pytest.raises(IpmiRefused, match="the BMC is busy"):
        BmcSession(bmc).ask("a test", *GET_ID)


def test_a_silent_bmc_costs_no_more_than_the_limit_of_the_reading(node: EmulatedNode, bmc: Bmc) -> None:
    node.bmc.answer("silent")
    session = BmcSession(bmc, limit_s=0.1)
    for _ in range(3):
        with pytest.raises(IpmiTimeout):
            session.ask("a test", *GET_ID)


def test_without_a_device_file_there_is_no_bmc(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="No such file or directory") as unavailable:
        Bmc(str(tmp_path / "ipmi0")).open()
    assert unavailable.value.absent


def test_a_device_file_without_a_driver_is_no_bmc(node: EmulatedNode) -> None:
    node.answer(19, None, "open")
    with pytest.raises(Unavailable, match="No such device") as unavailable:
        Bmc(DEVICE, str(node.ipmi)).open()
    assert unavailable.value.absent


def test_a_device_file_that_may_not_be_opened_says_what_to_change(node: EmulatedNode) -> None:
    node.answer(1, None, "open")
    with pytest.raises(Unavailable, match="DeviceAllow= must hold it") as unavailable:
        Bmc(DEVICE, str(node.ipmi)).open()
    assert not unavailable.value.absent


def test_a_call_that_the_kernel_refuses_is_a_failed_call(node: EmulatedNode, bmc: Bmc) -> None:
    node.answer(16, None, "ioctl")
    with pytest.raises(CallFailed, match="cannot send to /dev/ipmi0: Device or resource busy"):
        ask(bmc, GET_ID)


def test_a_driver_that_has_let_go_of_the_bmc_makes_it_unavailable(node: EmulatedNode, bmc: Bmc) -> None:
    node.answer(19, None, "ioctl")
    with pytest.raises(Unavailable, match="No such device"):
        ask(bmc, GET_ID)
