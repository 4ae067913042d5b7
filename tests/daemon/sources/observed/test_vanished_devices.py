"""A part that is not listed any more is gone: by what it is, not by a name that another part may have now."""

from nodeagent import wire
from nodeagent.core.engine import Engine
from nodeagent.core.model import DeviceGone, DeviceSeen, EventKind, Input, Kind, SourceBack, Started, Verdict
from nodeagent.daemon.sources.inventory import devices_of
from nodeagent.daemon.sources.observation import Observation
from nodeagent.daemon.sources.translate import StampClock
from tests.core.build import begin, catalog, device_view, ns

CLOCK = StampClock(boottime_ns=lambda: 1_000, to_rule_ns=lambda stamp_ns: stamp_ns)


def gpu(index: int, part: int | None, slot: int | None = None) -> wire.Device:
    """The GPU that has this index, ``part`` None: it does not say which it is; in the slot of its number."""
    place = part if slot is None else slot
    return wire.Device(
        device=f"gpu{index}",
        kind=Kind.CHIP,
        vendor="nvidia",
        identity="" if part is None else f"GPU-{part}",
        attributes={} if place is None else {"pci": f"0000:0{place}:00.0"},
    )


def listed(*parts: int) -> tuple[wire.Device, ...]:
    """Numbered in their order, as NVML does."""
    return tuple(gpu(index, part) for index, part in enumerate(parts))


def read(observation: Observation, devices: tuple[wire.Device, ...]) -> list[Input]:
    """A worker lists these and reads each of them."""
    inputs = observation.hello(wire.Hello(devices=devices), ())
    for device in devices:
        reply = wire.Reply(id=1, device=device.device, begun_ns=1, took_ns=1, active=())
        inputs += observation.reply(reply)
    return inputs


def observation(known: tuple[wire.Device, ...] = ()) -> Observation:
    return Observation("nvidia", False, CLOCK, known)


def gone(inputs: list[Input]) -> list[str]:
    return [given.device for given in inputs if isinstance(given, DeviceGone)]


def judged(engine: Engine, at_s: int, inputs: list[Input]) -> list[tuple[EventKind, str]]:
    """What is emitted of devices that come and go."""
    emitted = [event for given in inputs for event in engine.step(ns(at_s), given).events]
    return [(event.kind, event.device_id) for event in emitted if event.kind.startswith("device_")]


def verdicts(engine: Engine) -> dict[str, tuple[Verdict, bool]]:
    """Of each part, and whether it is observed."""
    return {
        view.id: (view.verdict, view.observed) for view in engine.view().devices if view.id.startswith("GPU-")
    }


def started_with(*parts: int) -> Engine:
    """A life in which these were read; it has ended, and the next one begins."""
    engine = begin(catalog())
    judged(engine, 1, read(observation(), listed(*parts)))
    engine.step(ns(2), Started(boot_id="boot-1", version="2"))
    return engine


def test_a_part_that_vanished_while_no_daemon_ran_is_gone_at_the_first_list() -> None:
    engine = started_with(0, 1)
    known = devices_of(engine.view(), "nvidia")

    emitted = judged(engine, 3, read(observation(known), listed(0)))

    assert emitted == [(EventKind.DEVICE_GONE, "GPU-1")]
    assert verdicts(engine) == {"GPU-0": (Verdict.ALLOW, True), "GPU-1": (Verdict.UNKNOWN, False)}


def test_where_indices_move_up_it_is_the_part_that_vanished_which_is_gone() -> None:
    engine = started_with(0, 1, 2, 3)
    observed = observation(devices_of(engine.view(), "nvidia"))
    assert judged(engine, 3, read(observed, listed(0, 1, 2, 3))) == []

    emitted = judged(engine, 4, read(observed, listed(0, 2, 3)))

    assert emitted == [(EventKind.DEVICE_GONE, "GPU-1")]
    assert verdicts(engine) == {
        "GPU-0": (Verdict.ALLOW, True),
        "GPU-1": (Verdict.UNKNOWN, False),
        "GPU-2": (Verdict.ALLOW, True),
        "GPU-3": (Verdict.ALLOW, True),
    }
    assert device_view(engine, "gpu1").id == "GPU-2"


def test_a_part_that_is_known_to_be_gone_is_told_once_over_all_lives() -> None:
    engine = started_with(0, 1)
    judged(engine, 3, read(observation(devices_of(engine.view(), "nvidia")), listed(0)))
    engine.step(ns(4), Started(boot_id="boot-2", version="3"))

    assert (EventKind.DEVICE_GONE, "GPU-1") not in judged(
        engine, 5, read(observation(devices_of(engine.view(), "nvidia")), listed(0))
    )


def test_a_part_whose_slot_holds_another_is_replaced_and_not_gone() -> None:
    inputs = read(observation(listed(0, 1)), (gpu(0, 0), gpu(1, 9, slot=1)))

    assert gone(inputs) == []
    assert [given.identity for given in inputs if isinstance(given, DeviceSeen)] == ["GPU-0", "GPU-9"]


def test_a_part_that_does_not_say_which_it_is_is_not_gone() -> None:
    assert gone(read(observation(listed(0, 1)), (gpu(0, 0), gpu(1, None)))) == []


def test_a_part_that_has_moved_to_the_slot_of_one_that_vanished_is_not_taken_for_it() -> None:
    assert gone(read(observation(listed(0, 1)), (gpu(0, 0, slot=1),))) == ["gpu1"]


def test_of_a_part_that_is_let_alone_nothing_is_told_before_it_is_asked_again() -> None:
    observed = observation(listed(0, 1))
    observed.rest(["gpu1"], "it is reset")

    assert gone(read(observed, listed(0))) == []
    assert gone(observed.wake(["gpu1"])) == ["gpu1"]


def test_a_part_that_is_listed_again_while_it_is_let_alone_was_never_gone() -> None:
    observed = observation(listed(0, 1))
    observed.rest(["gpu1"], "it is reset")
    read(observed, listed(0))

    assert gone(read(observed, listed(0, 1))) == []
    assert gone(observed.wake(["gpu1"])) == []


def test_parts_of_which_nothing_is_left_to_open_are_gone_too() -> None:
    absent = wire.Unavailable(reason="no libnvidia-ml.so.1", absent=True)
    observed = observation(listed(0, 1))

    first, again = observed.unavailable(absent), observed.unavailable(absent)

    assert gone(first) == ["gpu0", "gpu1"]
    assert not any(isinstance(given, SourceBack) for given in first)
    assert again == []


def test_only_the_parts_of_the_source_are_compared_with_its_list() -> None:
    engine = started_with(0)

    assert [part.identity for part in devices_of(engine.view(), "nvidia")] == ["GPU-0"]
    assert devices_of(engine.view(), "ascend") == ()
