"""The flag of a chip whose own network ports are faulty, as MindCluster's schedulers read it."""

from nodeagent.core.model import Level
from tests.core.build import LINK_DOWN, active, begin, catalog, device_view, row, run, signal

HBM = "80E18005"


def test_a_fault_of_its_ports_marks_the_chip_until_it_is_over() -> None:
    engine = begin(catalog(row(LINK_DOWN, Level.PRE_SEPARATE_NPU), row(HBM, Level.PRE_SEPARATE_NPU)))
    events = run(engine, [(1, signal(LINK_DOWN)), (2, signal(HBM)), (3, active(HBM, begun_s=3))])

    assert [(event.code, event.kind, event.network_unhealthy) for event in events] == [
        (LINK_DOWN, "raised", True),
        (HBM, "raised", True),
        (LINK_DOWN, "cleared", False),
    ]
    assert not device_view(engine).network_unhealthy


def test_one_that_needs_no_handling_does_not() -> None:
    engine = begin(catalog(row(LINK_DOWN, Level.NOT_HANDLE)))

    run(engine, [(1, signal(LINK_DOWN))])

    assert not device_view(engine).network_unhealthy
