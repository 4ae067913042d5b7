"""The order in which devices are listed: as people count, and addresses as they are written."""

import random

import pytest

from nodeagent.core.state.names import natural
from tests.core.build import begin, catalog


@pytest.mark.parametrize(
    "in_order",
    [
        ["gpu0", "gpu7", "npu0", "npu1", "npu2", "npu9", "npu10", "npu15"],
        ["ub0", "ub0/2", "ub0/10", "ub2", "ub10", "ub10/1"],
        ["0000:1b:00.0", "0000:1b:00.1", "0000:3b:00.0", "0000:a0:00.0", "0001:10:00.0"],
        ["0000:10:00.0", "0000:1b:00.0", "0000:20:00.0"],
        ["", "7", "npu", "npu" + "9" * 5000, "npu1" + "0" * 5000],
    ],
)
def test_numbers_are_counted_and_addresses_compared_as_they_stand(in_order: list[str]) -> None:
    mixed = list(in_order)
    random.Random(1).shuffle(mixed)
    assert sorted(mixed, key=natural) == in_order


def test_a_view_lists_the_node_and_then_its_devices_in_that_order() -> None:
    view = begin(catalog(), chips=12).view()
    assert [device.name for device in view.devices] == ["node", *(f"npu{number}" for number in range(12))]
