"""A source is back when a worker that has its driver open has read it all, and never otherwise."""

from nodeagent import wire
from nodeagent.core.model import Kind, SourceBack, SourceLost
from nodeagent.daemon.sources.observation import Observation
from nodeagent.daemon.sources.translate import StampClock
from nodeagent.wire import SOURCE

CLOCK = StampClock(boottime_ns=lambda: 1_000, to_rule_ns=lambda stamp_ns: stamp_ns)


def devices(*names: str) -> tuple[wire.Device, ...]:
    return tuple(wire.Device(device=name, kind=Kind.CHIP, vendor="ascend") for name in names)


def answer(device: str, error: str = "") -> wire.Reply:
    return wire.Reply(id=1, device=device, begun_ns=1, took_ns=1, error=error)


def test_a_source_without_devices_that_stops_answering_is_lost_and_not_back() -> None:
    observation = Observation("ascend", True, CLOCK)
    observation.hello(wire.Hello(), ())

    inputs = [*observation.lost("no device answers"), *observation.late([SOURCE], "a call is late")]

    assert not observation.observing
    assert [type(given) for given in inputs if not hasattr(given, "code")] == [SourceLost]


def test_devices_that_are_asked_again_do_not_bring_back_a_source_whose_worker_has_ended() -> None:
    observation = Observation("nvidia", True, CLOCK)
    observation.hello(wire.Hello(devices=devices("gpu0", "gpu1", "gpu2")), ())
    for name in ("gpu0", "gpu1", "gpu2"):
        observation.reply(answer(name))
    observation.population(wire.Devices(devices=devices("gpu0", "gpu1")))
    observation.rest(["gpu0"], "it is reset")
    observation.lost("the worker was ended for the reset")

    assert observation.wake(["gpu0"]) == []
    assert not observation.observing


def test_a_source_is_back_though_the_last_device_that_it_awaits_is_let_alone() -> None:
    observation = Observation("ascend", True, CLOCK)
    observation.hello(wire.Hello(devices=devices("npu0", "npu1")), ())
    observation.reply(answer("npu1"))

    inputs = observation.rest(["npu0"], "it is reset")

    assert inputs[:2] == [
        SourceBack(source="ascend", required=True),
        SourceLost(source="ascend", reason="it is reset", device="npu0"),
    ]


def test_a_source_whose_driver_is_gone_before_its_first_read_is_not_back_with_an_answer_that_comes_late() -> (
    None
):
    observation = Observation("nvidia", False, CLOCK)
    observation.hello(wire.Hello(devices=devices("gpu0", "gpu1")), ())
    observation.reply(answer("gpu0"))
    observation.unavailable(wire.Unavailable(reason="the library was removed", absent=True))

    inputs = observation.reply(answer("gpu1"))

    assert not any(isinstance(given, SourceBack) for given in inputs)
    assert not observation.observing


def test_a_source_that_was_let_go_and_cannot_be_read_afterwards_is_lost_for_that_reason() -> None:
    observation = Observation("nvidia", True, CLOCK)
    observation.hello(wire.Hello(devices=devices("gpu0")), ())
    observation.reply(answer("gpu0"))
    observation.let_go("quiesced by uid:0: driver upgrade")
    observation.hello(wire.Hello(devices=devices("gpu0")), ())

    assert observation.reply(answer("gpu0", error="driver not loaded")) == [
        SourceLost(
            source="nvidia",
            reason="no device can be read; gpu0: the driver answers: driver not loaded",
            required=True,
        )
    ]
