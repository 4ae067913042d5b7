"""Who holds a device is shown with it, as last reported."""

from nodeagent.core.model import ProcessesListed
from tests.core.build import begin, catalog, device_view, held, run


def test_a_device_shows_its_holders_none_while_they_are_unknown_and_no_one_when_it_is_free() -> None:
    engine = begin(catalog())
    busy, free = held("npu0", "slurm:1.0"), ProcessesListed(device="npu0", holders=())
    shown = [device_view(engine).holders]
    for given in (busy, free):
        run(engine, [(1, given)])
        shown.append(device_view(engine).holders)
    assert shown == [None, busy.holders, ()]
