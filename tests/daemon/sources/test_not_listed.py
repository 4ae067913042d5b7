"""A source that lists no device has nothing but its list by which it can be seen to work."""

from nodeagent import wire
from nodeagent.core.model import Kind, SourceBack, SourceLost
from nodeagent.daemon.sources.observation import Observation
from nodeagent.daemon.sources.translate import StampClock
from nodeagent.wire import SOURCE

CLOCK = StampClock(boottime_ns=lambda: 1_000, to_rule_ns=lambda stamp_ns: stamp_ns)
PORT = wire.Device(device="eth0", kind=Kind.LINK, vendor="linux")


def answer(device: str = SOURCE, error: str = "") -> wire.Reply:
    return wire.Reply(id=1, device=device, begun_ns=1, took_ns=1, error=error)


def opened(*devices: wire.Device) -> Observation:
    observation = Observation("link", True, CLOCK)
    observation.hello(wire.Hello(devices=devices), ())
    for device in devices:
        observation.reply(answer(device.device))
    assert observation.observing
    return observation


def test_it_is_lost_while_its_devices_cannot_be_listed_and_back_once_they_can() -> None:
    observation = opened()
    reason = "its devices cannot be listed: sysfs cannot be read"
    assert observation.reply(answer(error="sysfs cannot be read")) == [
        SourceLost(source="link", reason=reason, required=True)
    ]
    assert observation.reply(answer(error="sysfs cannot be read")) == []
    assert SourceBack(source="link", required=True) in observation.reply(answer())
    assert observation.observing


def test_what_is_listed_then_has_to_answer_first() -> None:
    observation = opened()
    observation.reply(answer(error="sysfs cannot be read"))
    observation.population(wire.Devices(devices=(PORT,)))
    observation.reply(answer())
    assert not observation.observing
    observation.reply(answer("eth0"))
    assert observation.observing


def test_a_source_whose_devices_answer_is_observed_though_a_list_fails() -> None:
    observation = opened(PORT)
    assert observation.reply(answer(error="sysfs cannot be read")) == []
    assert observation.observing


def test_another_worker_that_reads_it_brings_it_back() -> None:
    observation = opened()
    observation.reply(answer(error="sysfs cannot be read"))
    observation.lost("its worker ended")
    assert SourceBack(source="link", required=True) in observation.hello(wire.Hello(), ())
    assert not any(isinstance(given, SourceBack) for given in observation.reply(answer()))
