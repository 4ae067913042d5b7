"""What a worker says, as the core takes it: the clock turned, the future refused, the source ours."""

from nodeagent import wire
from nodeagent.core.model import ActiveCode, ActiveSet, Assertion, Signal
from nodeagent.daemon.sources.observation import Observation
from nodeagent.daemon.sources.translate import StampClock, active_set, fault, signals

CLOCK = StampClock(boottime_ns=lambda: 1_000, to_rule_ns=lambda stamp_ns: stamp_ns + 5_000_000)


def test_stamps_leave_on_the_rule_clock() -> None:
    said = wire.Signal(device="node", code="X", count=3, first_ns=100, last_ns=900, backdated=True)
    assert signals("kmsg", wire.Batch(signals=(said,)), CLOCK) == [
        Signal(
            source="kmsg",
            device="node",
            code="X",
            assertion=Assertion.ONCE,
            count=3,
            first_ns=5_000_100,
            last_ns=5_000_900,
            backdated=True,
        )
    ]


def test_stamp_from_the_future_is_now() -> None:
    said = wire.Signal(device="node", code="X", first_ns=5_000, last_ns=2**62)
    (signal,) = signals("kmsg", wire.Batch(signals=(said,)), CLOCK)
    assert (signal.first_ns, signal.last_ns) == (5_001_000, 5_001_000)


def test_first_is_never_after_last() -> None:
    said = wire.Signal(device="node", code="X", first_ns=900, last_ns=100)
    (signal,) = signals("kmsg", wire.Batch(signals=(said,)), CLOCK)
    assert (signal.first_ns, signal.last_ns) == (5_000_100, 5_000_100)


def test_read_history_speaks_for_all_devices() -> None:
    said = wire.CaughtUp(begun_ns=7, active=())
    assert active_set("kmsg", said, CLOCK) == ActiveSet(
        source="kmsg", device="*", codes=(), begun_ns=5_000_007, complete=True
    )


def test_a_list_of_the_node_speaks_for_the_node_and_keeps_its_evidence() -> None:
    dimm = wire.Active(code="01000017", evidence={"parts": "type 1 number 7"})
    said = wire.CaughtUp(begun_ns=7, active=(dimm,), device="node", complete=False)
    assert active_set("bmc", said, CLOCK) == ActiveSet(
        source="bmc",
        device="node",
        codes=(ActiveCode(code="01000017", evidence={"parts": "type 1 number 7"}),),
        begun_ns=5_000_007,
        complete=False,
    )


def test_incomplete_list_stays_incomplete() -> None:
    said = wire.Reply(
        id=1,
        device="npu0",
        begun_ns=7,
        took_ns=1,
        active=(wire.Active(code="80E18005", severity=2),),
        complete=False,
    )
    assert active_set("ascend", said, CLOCK) == ActiveSet(
        source="ascend",
        device="npu0",
        codes=(ActiveCode(code="80E18005", severity=2),),
        begun_ns=5_000_007,
        complete=False,
    )


def test_fault_of_a_source_as_a_whole_is_the_nodes_and_names_the_source() -> None:
    reported = fault("driver_unresponsive", "*", Assertion.OCCUR, source="kmsg", reason="hangs")
    assert (reported.source, reported.device, reported.code) == ("agent", "node", "driver_unresponsive.kmsg")
    assert reported.evidence == {"source": "kmsg", "reason": "hangs"}


def test_fault_of_a_device_needs_no_source_in_its_code() -> None:
    reported = fault("driver_unresponsive", "npu3", Assertion.OCCUR, source="ascend")
    assert (reported.device, reported.code) == ("npu3", "driver_unresponsive")


def test_a_fault_by_which_a_source_cannot_be_read_is_told_once_and_by_its_source() -> None:
    observation = Observation("nvidia", False, CLOCK)
    said = wire.Unavailable(reason="the driver is not loaded", errno=9, code="NV_DRIVER_NOT_LOADED")
    reported = [
        (given.source, given.device, given.code, given.assertion)
        for given in [*observation.unavailable(said), *observation.unavailable(said)]
        if isinstance(given, Signal)
    ]
    assert reported == [("nvidia", "node", "NV_DRIVER_NOT_LOADED", Assertion.OCCUR)]
