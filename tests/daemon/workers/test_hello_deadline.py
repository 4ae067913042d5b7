"""How long the workers of each source may take to say hello."""

import pytest

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.daemon.clock import carry_on
from nodeagent.daemon.sources.configured import spec_of
from nodeagent.vendors import DriverConfig

SLEEP_IN_THE_KERNEL_S = 150.0
SILENT_MCUS_S = 8 * 2.0


@pytest.mark.parametrize("source", ["ascend"])
def test_a_driver_that_sleeps_until_all_chips_are_up_is_waited_for(source: str) -> None:
    assert hello_deadline_s(source) > SLEEP_IN_THE_KERNEL_S + SILENT_MCUS_S


def test_others_are_not_waited_for_as_long() -> None:
    assert hello_deadline_s("kmsg") == 60.0


def hello_deadline_s(source: str) -> float:
    clock = carry_on(None, "boot")
    return spec_of(source, DriverConfig(), Catalog(digest=""), clock, None, ()).hello_deadline_s
