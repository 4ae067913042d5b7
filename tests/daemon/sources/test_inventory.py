"""Devices that vanish, by their identity and not by their name; and fewer or more chips than are expected."""

from nodeagent import wire
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    NODE,
    DeviceGone,
    DeviceSeen,
    EventKind,
    Input,
    Kind,
    Level,
    Signal,
    SourceBack,
    SourceLost,
    Started,
    Verdict,
)
from nodeagent.daemon.sources.inventory import devices_of
from nodeagent.daemon.sources.observation import Observation
from nodeagent.daemon.sources.translate import StampClock
from tests.core.build import begin, catalog, device_view, ns, of, open_codes, run, wait
from tests.shipped import shipped_catalog

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


FEWER = "fewer_chips_than_expected.nvidia"
MORE = "more_chips_than_expected.nvidia"
NONE_HERE = wire.Unavailable(reason="the library is not installed", absent=True)


def expecting(number: int | None) -> Observation:
    return Observation("nvidia", False, CLOCK, expected_chips=number)


def reported(inputs: list[Input]) -> list[tuple[str, str, str]]:
    """What is said of the number: code, assertion, reason."""
    return [
        (given.code, str(given.assertion), given.evidence.get("reason", ""))
        for given in inputs
        if isinstance(given, Signal) and given.code in (FEWER, MORE)
    ]


def judged_chips(engine: Engine, at_s: float, inputs: list[Input]) -> None:
    run(engine, [(at_s, given) for given in inputs])


def stands(engine: Engine) -> tuple[Verdict, list[str]]:
    """Of the node: its verdict, and what is said of the number of its chips."""
    codes = [code for _, code in open_codes(engine) if code in (FEWER, MORE)]
    return device_view(engine, NODE).verdict, codes


def test_so_many_as_expected_are_no_fault_and_end_what_an_earlier_life_told() -> None:
    assert reported(read(expecting(2), listed(0, 1))) == [(FEWER, "recover", ""), (MORE, "recover", "")]


def test_a_source_without_the_key_says_nothing_of_numbers() -> None:
    assert reported(read(expecting(None), listed(0, 1))) == []


def test_a_chip_too_few_is_told_at_once_and_after_three_minutes_the_node_takes_no_new_jobs() -> None:
    engine = begin(shipped_catalog())
    observation = expecting(3)
    judged_chips(engine, 1, read(observation, listed(0, 1)))
    assert stands(engine) == (Verdict.ALLOW, [FEWER])

    wait(engine, 181)
    assert stands(engine)[0] is Verdict.ALLOW
    (levelled,) = of(wait(engine, 182), EventKind.LEVEL_CHANGED)
    assert (levelled.device, levelled.condition_level) == (NODE, Level.PRE_SEPARATE_FAULT)
    assert levelled.evidence == {"reason": "2 listed, drivers.nvidia.expected_chips is 3"}
    assert stands(engine) == (Verdict.NO_NEW_JOBS, [FEWER])

    judged_chips(engine, 200, observation.population(wire.Devices(devices=listed(0, 1, 2))))
    wait(engine, 200.001)
    assert stands(engine) == (Verdict.ALLOW, [])


def test_chips_that_are_listed_late_after_a_start_are_no_fault_that_counts() -> None:
    engine = begin(shipped_catalog())
    observation = expecting(3)
    judged_chips(engine, 1, read(observation, listed(0)))
    judged_chips(engine, 150, observation.population(wire.Devices(devices=listed(0, 1, 2))))

    assert of(wait(engine, 1000), EventKind.LEVEL_CHANGED) == []
    assert stands(engine) == (Verdict.ALLOW, [])


def test_nothing_is_counted_before_each_chip_was_asked_once() -> None:
    assert reported(expecting(3).hello(wire.Hello(devices=listed(0, 1)), ())) == []


def test_while_the_library_is_let_go_of_nothing_is_missed_and_no_time_runs() -> None:
    """A person upgrades the driver, and one chip was late before that."""
    engine = begin(shipped_catalog())
    observation = expecting(3)
    judged_chips(engine, 1, read(observation, listed(0, 1)))
    judged_chips(engine, 60, observation.let_go("quiesced"))
    wait(engine, 4000)
    assert (device_view(engine, NODE).level, stands(engine)[1]) == (Level.NOT_HANDLE, [FEWER])

    judged_chips(engine, 4000, read(observation, listed(0, 1, 2)))
    assert stands(engine) == (Verdict.ALLOW, [])


def test_where_none_is_found_and_some_are_expected_they_are_missed() -> None:
    engine = begin(shipped_catalog())
    observation = expecting(3)
    judged_chips(engine, 1, observation.unavailable(NONE_HERE))
    wait(engine, 200)

    assert stands(engine) == (Verdict.NO_NEW_JOBS, [FEWER])
    assert not observation.absent


def test_where_none_is_expected_none_is_missed() -> None:
    observation = expecting(0)
    assert reported(observation.unavailable(NONE_HERE)) == [(FEWER, "recover", ""), (MORE, "recover", "")]
    assert observation.absent


def test_a_library_that_cannot_be_opened_says_nothing_of_how_many_there_are() -> None:
    observation = expecting(3)
    inputs = observation.unavailable(wire.Unavailable(reason="the driver has another version"))
    assert (reported(inputs), [type(given) for given in inputs]) == ([], [SourceLost])


def test_more_than_expected_is_told_and_nothing_more() -> None:
    engine = begin(shipped_catalog())
    judged_chips(engine, 1, read(expecting(1), listed(0, 1)))
    wait(engine, 4000)
    assert stands(engine) == (Verdict.ALLOW, [MORE])


def test_the_slots_that_are_known_to_lack_a_chip_are_named() -> None:
    observation = expecting(4)
    read(observation, listed(0, 1))
    lost = wire.Missing(device="0000:02:00.0", reason="PCI lists it")
    inputs = observation.population(wire.Devices(devices=listed(0, 1), missing=(lost,)))
    assert reported(inputs) == [
        (FEWER, "occur", "2 listed, drivers.nvidia.expected_chips is 4; missing: 0000:02:00.0")
    ]


def test_another_number_counts_at_once() -> None:
    observation = expecting(0)
    read(observation, listed(0, 1))

    assert reported(observation.expect(3)) == [
        (FEWER, "occur", "2 listed, drivers.nvidia.expected_chips is 3")
    ]
    assert reported(observation.expect(1)) == [
        (FEWER, "recover", ""),
        (MORE, "occur", "2 listed, drivers.nvidia.expected_chips is 1"),
    ]
    assert reported(observation.expect(0)) == [(MORE, "recover", "")]


def test_what_nobody_expects_any_more_is_not_missed_by_a_source_that_is_not_here() -> None:
    observation = expecting(3)
    observation.unavailable(NONE_HERE)
    assert reported(observation.expect(0)) == [(FEWER, "recover", "")]
