"""Codes that no table names are named by their digits."""

from dataclasses import replace

import pytest

from nodeagent.core.catalog.codes import Decoding
from tests.core.build import begin, catalog, run, signal
from tests.shipped import shipped_catalog


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("80E18009", "HBM RAS State: bus error, probably caused by software"),
        ("80e18009", "HBM RAS State: bus error, probably caused by software"),
        ("40F84E01", "BASE_SERVICE Heartbeat Sensor: Heartbeat Lost(2nd Monitor Center) (host side)"),
        ("80E18077", "HBM RAS State: state 119"),
        ("81998007", "Part 0xCC RAS State: single bit ecc error not corrected"),
        ("80E1FE01", "HBM Sensor 0xFF: state 1"),
    ],
)
def test_side_part_sensor_and_state_are_named(code: str, name: str) -> None:
    assert shipped_catalog().decoding.name(code) == name


@pytest.mark.parametrize("code", ["A2140007", "B4060011", "9419321B"])
def test_black_box_codes_have_no_fields(code: str) -> None:
    assert shipped_catalog().decoding.name(code) is None


@pytest.mark.parametrize(
    "code", ["080E18009", "00E18009", "C0E18009", "[0x08520003,na,L2,na]", "XID_1234", ""]
)
def test_what_is_no_event_code_is_not_decoded(code: str) -> None:
    assert shipped_catalog().decoding.name(code) is None


def test_nothing_is_said_of_a_code_whose_part_and_sensor_are_both_unknown() -> None:
    assert Decoding().name("80E18009") is None


def test_an_unknown_code_of_the_ascend_driver_has_its_decoded_name() -> None:
    engine = begin(replace(catalog(), decoding=shipped_catalog().decoding))
    (raised,) = run(engine, [(1, signal("80E18009", severity=2))])
    assert (raised.name, raised.unknown) == ("HBM RAS State: bus error, probably caused by software", True)


def test_the_code_of_another_source_is_not_taken_for_an_ascend_one() -> None:
    engine = begin(replace(catalog(), decoding=shipped_catalog().decoding))
    (raised,) = run(engine, [(1, signal("80E18009", source="public"))])
    assert (raised.name, raised.unknown) == ("80E18009", True)
