"""What MindCluster makes of the same sequences, beside what we do, with the reason of each difference.

Read in Ascend/mind-cluster at 22bb3d98, with the shipped rules. Its device-plugin judges durations in
``timeoutOrRecoveryAlgorithm`` (``pkg/common/fault_code.go``), repetition in ``handleFrequencyFault``; a code
with both rules counts where its time-out status changes (``handleFaultQueue``). Its clusterd counts three in
a day of whatever device-plugin reports of chips in jobs at more than SubHealthFault (``domain/manualfault``).
"""

from dataclasses import dataclass

import pytest

from nodeagent.core.model import EventKind, Input
from tests.core.build import DAY_S, HOUR_S, LINK_DOWN, begin, held, of, run, signal, wait
from tests.shipped import shipped_catalog

HARDWARE, ANY_CODE, DROPPED = "80E01801", "80C98009", "40F84E00"
FOR_GOOD = "for good"
PLUGIN, CLUSTERD = "device-plugin", "clusterd"
Said = tuple[float, str]


def spans(*pairs: tuple[float, float]) -> tuple[Said, ...]:
    return tuple(said for since, until in pairs for said in ((since, "occur"), (until, "recover")))


def hourly(times: int, length_s: float) -> tuple[Said, ...]:
    return spans(*((hour * HOUR_S, hour * HOUR_S + length_s) for hour in range(1, times + 1)))


def hourly_with_a_once(length_s: float) -> tuple[Said, ...]:
    """Five presences, each with a once after five seconds."""
    return tuple(
        (hour * HOUR_S + at_s, said)
        for hour in range(1, 6)
        for at_s, said in ((0, "occur"), (5, "once"), (length_s, "recover"))
    )


@dataclass(frozen=True)
class Sequence:
    """``ours`` and ``vendor``: until which second the chip is out of service for it, None where it is not.

    ``by`` says which part of MindCluster judges so, ``why`` they differ, "" where they do not.
    """

    name: str
    code: str
    said: tuple[Said, ...]
    ours: float | str | None
    vendor: float | str | None
    why: str = ""
    by: str = PLUGIN
    in_use: bool = True


LATER_QUIET = "its quiet begins where the recovery has lasted, ours with the recovery"
FIVE_S = 5 * HOUR_S + 30
SEQUENCES = (
    Sequence("four passages", LINK_DOWN, hourly(4, 30), None, None),
    Sequence(
        "five passages",
        LINK_DOWN,
        hourly(5, 30),
        FIVE_S + 2 * DAY_S,
        FIVE_S + 60 + 2 * DAY_S,
        LATER_QUIET,
    ),
    Sequence("twenty breaks that are too short", LINK_DOWN, hourly(20, 15), None, None),
    Sequence(
        "five long breaks, each within the recovery time of the last",
        LINK_DOWN,
        spans(*((HOUR_S + 80 * index, HOUR_S + 80 * index + 30) for index in range(5))),
        None,
        None,
    ),
    Sequence(
        "five passages, and a short break a day later",
        LINK_DOWN,
        (*hourly(5, 30), *spans((30 * HOUR_S, 30 * HOUR_S + 10))),
        FIVE_S + 2 * DAY_S,
        FIVE_S + 60 + 2 * DAY_S,
        LATER_QUIET,
    ),
    Sequence(
        "five passages, and a long break a day later",
        LINK_DOWN,
        (*hourly(5, 30), *spans((30 * HOUR_S, 30 * HOUR_S + 30))),
        30 * HOUR_S + 30 + 2 * DAY_S,
        30 * HOUR_S + 30 + 60 + 2 * DAY_S,
        LATER_QUIET,
    ),
    Sequence(
        "a once in each of five short breaks",
        LINK_DOWN,
        hourly_with_a_once(15),
        None,
        None,
    ),
    Sequence(
        "a once in each of five long breaks",
        LINK_DOWN,
        hourly_with_a_once(30),
        FIVE_S + 2 * DAY_S,
        None,
        "its queue pairs a once with the occurrence before it and forgets both; here it interrupts nothing",
    ),
    Sequence(
        "five onces",
        LINK_DOWN,
        tuple((hour * HOUR_S, "once") for hour in range(1, 6)),
        None,
        5 * HOUR_S + 60 + 2 * DAY_S,
        "its queue takes a once for the begin of a presence that nothing ends, and for its end as well",
    ),
    Sequence(
        "three passages in a job",
        LINK_DOWN,
        hourly(3, 30),
        None,
        3 * HOUR_S + 20 + 2 * DAY_S,
        "it counts what has a rule of its own as well; here that replaces the rule for every code",
        CLUSTERD,
    ),
    Sequence("hardware that fails twice", HARDWARE, hourly(2, 30), FOR_GOOD, FOR_GOOD),
    Sequence(
        "any code three times",
        ANY_CODE,
        hourly(3, 30),
        FOR_GOOD,
        3 * HOUR_S + 2 * DAY_S,
        "it lets go of the chip 48 h later; here a person looks at it first",
        CLUSTERD,
    ),
    Sequence(
        "three drops under a job",
        DROPPED,
        hourly(3, 90),
        3 * HOUR_S + 90 + 2 * DAY_S,
        3 * HOUR_S + 2 * DAY_S,
        "its 48 h begin with the third drop, ours when the chip is back",
        CLUSTERD,
    ),
    Sequence(
        "three drops of a chip in no job", DROPPED, hourly(3, 90), None, None, by=CLUSTERD, in_use=False
    ),
)


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda one: f"{one.by}: {one.name}")
def test_a_sequence_takes_the_chip_out_for_as_long_as_the_table_says(sequence: Sequence) -> None:
    engine = begin(shipped_catalog())
    said: list[tuple[float, Input]] = [(1, held("npu0", "job-a" if sequence.in_use else None))]
    said += [(at, signal(sequence.code, what)) for at, what in sequence.said]
    events = run(engine, said)
    events += wait(engine, 30 * DAY_S)
    promoted, released = of(events, EventKind.PROMOTED), of(events, EventKind.RELEASED)
    until: list[float | str] = [(event.at_ns - 1) / 1e9 for event in released]
    until = until or [FOR_GOOD]
    assert until[: len(promoted)] == ([] if sequence.ours is None else [sequence.ours])


def test_each_difference_has_a_reason_and_nothing_else_has() -> None:
    assert [one.name for one in SEQUENCES if (one.ours != one.vendor) != bool(one.why)] == []
