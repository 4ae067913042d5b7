"""Fewer chips than are expected, or more: counted once the source was read, judged by the table."""

from nodeagent import wire
from nodeagent.core.engine import Engine
from nodeagent.core.model import NODE, EventKind, Input, Level, Signal, SourceLost, Verdict
from nodeagent.daemon.sources.observation import Observation
from tests.core.build import begin, device_view, of, open_codes, run, wait
from tests.daemon.sources.observed.test_vanished_devices import CLOCK, listed, read
from tests.shipped import shipped_catalog

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


def judged(engine: Engine, at_s: float, inputs: list[Input]) -> None:
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
    judged(engine, 1, read(observation, listed(0, 1)))
    assert stands(engine) == (Verdict.ALLOW, [FEWER])

    wait(engine, 181)
    assert stands(engine)[0] is Verdict.ALLOW
    (levelled,) = of(wait(engine, 182), EventKind.LEVEL_CHANGED)
    assert (levelled.device, levelled.condition_level) == (NODE, Level.PRE_SEPARATE_FAULT)
    assert levelled.evidence == {"reason": "2 listed, drivers.nvidia.expected_chips is 3"}
    assert stands(engine) == (Verdict.NO_NEW_JOBS, [FEWER])

    judged(engine, 200, observation.population(wire.Devices(devices=listed(0, 1, 2))))
    wait(engine, 200.001)
    assert stands(engine) == (Verdict.ALLOW, [])


def test_chips_that_are_listed_late_after_a_start_are_no_fault_that_counts() -> None:
    engine = begin(shipped_catalog())
    observation = expecting(3)
    judged(engine, 1, read(observation, listed(0)))
    judged(engine, 150, observation.population(wire.Devices(devices=listed(0, 1, 2))))

    assert of(wait(engine, 1000), EventKind.LEVEL_CHANGED) == []
    assert stands(engine) == (Verdict.ALLOW, [])


def test_nothing_is_counted_before_each_chip_was_asked_once() -> None:
    assert reported(expecting(3).hello(wire.Hello(devices=listed(0, 1)), ())) == []


def test_while_the_library_is_let_go_of_nothing_is_missed_and_no_time_runs() -> None:
    """A person upgrades the driver, and one chip was late before that."""
    engine = begin(shipped_catalog())
    observation = expecting(3)
    judged(engine, 1, read(observation, listed(0, 1)))
    judged(engine, 60, observation.let_go("quiesced"))
    wait(engine, 4000)
    assert (device_view(engine, NODE).level, stands(engine)[1]) == (Level.NOT_HANDLE, [FEWER])

    judged(engine, 4000, read(observation, listed(0, 1, 2)))
    assert stands(engine) == (Verdict.ALLOW, [])


def test_where_none_is_found_and_some_are_expected_they_are_missed() -> None:
    engine = begin(shipped_catalog())
    observation = expecting(3)
    judged(engine, 1, observation.unavailable(NONE_HERE))
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
    judged(engine, 1, read(expecting(1), listed(0, 1)))
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
