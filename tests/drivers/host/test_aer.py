"""Errors of PCI Express links, by the kernel's counters."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from nodeagent.drivers.host.check import Hardware
from nodeagent.drivers.host.pcie import Aer
from tests.daemon.staged import put
from tests.drivers.host.node_tree import CARD, GPU, PORT_OF_CARD, NodeTree, aer

REPOSITORY = Path(__file__).parents[3]
COUNTERS: Mapping[str, str] = tomllib.loads(
    (REPOSITORY / "tests/fixtures/hardware/linux-6.1-aer.toml").read_text()
)["after"]

Occurred = list[tuple[str, str, int, str]]


def look(check: Aer) -> Occurred:
    """Device, code, count and errors."""
    return [(each.device, each.code, each.count, each.evidence["errors"]) for each in check.look().occurred]


@pytest.fixture
def check(node: NodeTree) -> Aer:
    return Aer(node.sysfs, Hardware(node.sysfs))


@pytest.mark.parametrize(
    ("severity", "code"), [("correctable", "AER_CORR"), ("nonfatal", "AER_NONFATAL"), ("fatal", "AER_FATAL")]
)
def test_errors_have_the_code_of_the_kernels_line_on_the_right_device(
    node: NodeTree, check: Aer, severity: str, code: str
) -> None:
    node.card()
    gpu = node.gpu()
    aer(gpu, severity, RxOF=1, total=1)
    assert look(check) == []

    name = "BadTLP" if severity == "correctable" else "CmpltTO"
    aer(gpu, severity, **{name: 3}, total=4)

    assert look(check) == [(GPU, code, 3, f"{name} 3")]
    assert look(check) == []


def test_the_port_above_sees_what_the_card_does_not(node: NodeTree, check: Aer) -> None:
    card = node.card()
    look(check)

    aer(card.parent, "correctable", RxErr=2, BadDLLP=1)

    assert look(check) == [(PORT_OF_CARD, "AER_CORR", 3, "RxErr 2, BadDLLP 1")]


def test_counters_that_begin_anew_hide_no_error(node: NodeTree, check: Aer) -> None:
    card = node.card()
    aer(card, "fatal", DLP=9)
    look(check)

    aer(card, "fatal", SDES=1)

    assert look(check) == [(CARD, "AER_FATAL", 1, "SDES 1")]


def test_a_look_that_fails_counts_nothing_twice_and_forgets_nothing(node: NodeTree, check: Aer) -> None:
    first, second = node.card(), node.gpu()
    look(check)
    aer(second, "fatal", DLP=1)
    aer(first, "fatal", DLP=2)
    (first / "aer_dev_nonfatal").unlink()
    (first / "aer_dev_nonfatal").mkdir()
    with pytest.raises(IsADirectoryError):
        look(check)
    (first / "aer_dev_nonfatal").rmdir()

    assert sorted(look(check)) == [(GPU, "AER_FATAL", 1, "DLP 1"), (CARD, "AER_FATAL", 2, "DLP 2")]


def test_an_error_that_the_kernel_has_no_name_for_is_counted(node: NodeTree, check: Aer) -> None:
    card = node.card()
    look(check)

    put(card / "aer_dev_fatal", "Undefined 0\ndev_fatal_errs_bit[30] 2\nTOTAL_ERR_FATAL 2\n")

    assert look(check) == [(CARD, "AER_FATAL", 2, "dev_fatal_errs_bit[30] 2")]


def test_the_counters_of_a_real_kernel_name_errors_and_device(node: NodeTree, check: Aer) -> None:
    card = node.card()
    look(check)

    for name, text in COUNTERS.items():
        put(card / name, text)

    assert look(check) == [(CARD, "AER_CORR", 2, "BadTLP 2"), (CARD, "AER_NONFATAL", 2, "CmpltTO 2")]


def test_older_kernels_have_blanks_in_the_names_of_errors(node: NodeTree, check: Aer) -> None:
    card = node.card()
    look(check)

    put(card / "aer_dev_correctable", "Receiver Error 2\nBad TLP 0\nTOTAL_ERR_COR 2\n")

    assert look(check) == [(CARD, "AER_CORR", 2, "Receiver Error 2")]


def test_what_cannot_be_understood_tells_of_no_error(node: NodeTree, check: Aer) -> None:
    card = node.card()
    look(check)

    put(card / "aer_dev_fatal", "\x00\x01 nonsense\nTOTAL_ERR_FATAL -1\nTOTAL_ERR_FATAL \u00b2\n")

    assert look(check) == []


def test_all_counters_are_measured(node: NodeTree, check: Aer) -> None:
    card = node.card()
    aer(card, "nonfatal", UnsupReq=5)

    readings = check.look().readings

    assert readings[f"pcie_aer_nonfatal_total.{CARD}"] == 5
    assert readings[f"pcie_aer_fatal_total.{PORT_OF_CARD}"] == 0


def test_a_card_without_counters_is_not_watched(node: NodeTree, check: Aer) -> None:
    for folder in (card := node.card(), card.parent):
        for severity in ("correctable", "nonfatal", "fatal"):
            (folder / f"aer_dev_{severity}").unlink()

    assert (check.is_here(), check.look().readings) == (False, {})
