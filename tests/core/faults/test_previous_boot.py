"""What the previous boot logged before it stopped: notices, whatever the tables say of the code."""

from nodeagent.core.model import EventKind, Level, Signal
from tests.core.build import begin, catalog, repeat, row, run, signal


def of_the_previous_boot(code: str, device: str) -> Signal:
    return signal(code, "once", device, source="previous_boot")


def test_a_fault_of_the_previous_boot_opens_counts_and_isolates_nothing() -> None:
    engine = begin(catalog(row("F1", Level.SEPARATE_NPU), frequency=[repeat("F1", times=1)]))

    (event,) = run(engine, [(1, of_the_previous_boot("F1", "npu0"))])

    assert (event.kind, event.device, event.condition_level) == (
        EventKind.NOTICE,
        "npu0",
        Level.SEPARATE_NPU,
    )
    assert event.why == "logged in the previous boot, which no shutdown ended; nothing is done about it"
    assert (engine.view().conditions, engine.view().promotions) == ((), ())


def test_it_makes_no_device() -> None:
    engine = begin(catalog(row("F1")))

    (event,) = run(engine, [(1, of_the_previous_boot("F1", "0000:aa:00.0"))])

    assert (event.device, event.why.rpartition("; ")[2]) == ("node", "it names 0000:aa:00.0")
    assert [device.name for device in engine.view().devices] == ["node", "npu0"]
