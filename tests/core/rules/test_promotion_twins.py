"""Promotions against dumb twins that go through the whole history anew."""

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.engine import Engine
from nodeagent.core.model import Event, EventKind, Handling, Input, Level, Tick
from tests.core.build import (
    HBM,
    begin,
    catalog,
    held,
    ns,
    open_codes,
    repeat,
    row,
    run,
    signal,
    stands,
)

moderately = settings(max_examples=200, deadline=None)
PROMOTING = (EventKind.PROMOTED, EventKind.RELEASED, EventKind.SUPPRESSED)
END = 1000
Said = tuple[int, str]
"""At which second: occur, once or recover."""
Emitted = tuple[int, str]
"""At which ns: promoted, released or suppressed."""

_gaps = st.sampled_from((0, 1, 4, 5, 6, 9, 10, 11, 15, 16, 40))


def timed(steps: list[tuple[int, str]]) -> list[tuple[int, str]]:
    now, out = 1, []
    for gap, what in steps:
        now += gap
        out.append((now, what))
    return out


def promotions(events: list[Event]) -> list[tuple[int, str]]:
    return [(event.at_ns, event.kind.value) for event in events if event.kind in PROMOTING]


def play(engine: Engine, code: str, history: list[Said]) -> list[Event]:
    steps: list[tuple[float, Input]] = [(at, signal(code, what)) for at, what in history]
    return run(engine, [*steps, (END, Tick())])


# --------------------------------------------------------------------------- one chip: counting and release


def presence_ends(history: list[Said]) -> list[int | None]:
    """After each thing said: since when the fault is quiet, None while it is present."""
    present, out = False, list[int | None]()
    quiet_since: int | None = None
    for at, what in history:
        if what == "occur":
            present, quiet_since = True, None
        elif what == "once" and not present:
            quiet_since = at
        elif what == "recover" and present:
            present, quiet_since = False, at
        out.append(quiet_since)
    return out


def promotions_by_hand(history: list[Said], times: int, window: int, release: int) -> list[Emitted]:
    emitted, counted, stands_since = list[Emitted](), list[int](), False
    quiet = presence_ends(history)
    for index, (at, what) in enumerate([*history, (END, "end")]):
        before = quiet[index - 1] if index else None
        if stands_since and before is not None and at > before + release:
            emitted.append((ns(before + release) + 1, "released"))
            stands_since = False
        if what in ("occur", "once") and not stands_since:
            counted = [one for one in counted if one >= at - window] + [at]
            if len(counted) >= times:
                emitted.append((ns(at), "promoted"))
                counted, stands_since = [], True
    return emitted


said = st.sampled_from(("occur", "occur", "once", "recover", "recover"))


@moderately
@given(st.lists(st.tuples(_gaps, said), max_size=25), st.integers(1, 3))
def test_promotions_and_releases_follow_from_the_whole_history(
    steps: list[tuple[int, str]], times: int
) -> None:
    rule = repeat(HBM, times, 10, level=Level.SEPARATE_NPU, release_ns=ns(15))
    engine = begin(catalog(row(HBM), frequency=[rule], once_hold_ns=ns(5)))
    history = timed(steps)
    assert promotions(play(engine, HBM, history)) == promotions_by_hand(history, times, 10, 15)


# --------------------------------------------------------------------------- two chips: correlation

CORRELATION = 5


def near(at: int, others: list[int]) -> bool:
    return any(abs(at - other) <= CORRELATION for other in others)


def correlated_by_hand(history: list[tuple[int, int]], times: int) -> list[tuple[int, str, int]]:
    """(ns, kind, chip) up to the first promotion; ``history`` holds pairs (second, chip)."""
    emitted = list[tuple[int, str, int]]()
    counted: dict[int, list[int]] = {0: [], 1: []}
    fired: dict[int, tuple[int, list[int]]] = {}
    suppressed: list[int] = []
    for index, (at, chip) in enumerate([*history, (END, 0)]):
        for other, (since, _) in fired.items():
            if at > since + CORRELATION:
                return [*emitted, (ns(since + CORRELATION) + 1, "promoted", other)]
        if at == END:
            break
        if chip not in fired:
            counted[chip].append(at)
            if len(counted[chip]) >= times:
                fired[chip] = at, counted[chip]
                counted[chip] = []
        shown = {one: [when for when, on in history[: index + 1] if on == one] for one in (0, 1)}
        ended = [one for one in fired if near(fired[one][0], shown[1 - one])]
        for one in ended:
            since, occurrences = fired.pop(one)
            suppressed.append(since)
            counted[one] = [*occurrences, *counted[one]]
            emitted.append((ns(at), "suppressed", one))
        if ended or near(at, suppressed):
            for one in (0, 1):
                counted[one] = [when for when in counted[one] if not near(when, shown[1 - one])]
    return emitted


@moderately
@given(st.lists(st.tuples(_gaps, st.integers(0, 1)), max_size=16), st.integers(2, 3))
def test_what_two_chips_show_together_is_suppressed_and_nothing_else(
    steps: list[tuple[int, int]], times: int
) -> None:
    rule = repeat(HBM, times, 900, correlation_ns=ns(CORRELATION))
    engine = begin(catalog(row(HBM), frequency=[rule]), chips=2)
    now, history = 1, list[tuple[int, int]]()
    for gap, chip in steps:
        now += gap
        history.append((now, chip))
    inputs: list[tuple[float, Input]] = [(at, signal(HBM, "once", f"npu{chip}")) for at, chip in history]
    events = [event for event in run(engine, [*inputs, (END, Tick())]) if event.kind in PROMOTING]
    emitted = [(event.at_ns, event.kind.value, int(event.device[-1])) for event in events]
    first = next((index for index, one in enumerate(emitted) if one[1] == "promoted"), len(emitted))
    assert emitted[: first + 1] == correlated_by_hand(history, times)


# --------------------------------------------------------------------------- faults of the application


def is_known_to_be_free(changes: list[Said], at: int) -> bool:
    """Nobody holds the chip, nor held it within the last five seconds."""
    at_those_times = [[what for when, what in changes if when <= second] for second in range(at - 6, at + 1)]
    return bool(changes) and all(not known or known[-1] == "free" for known in at_those_times)


@moderately
@given(
    st.lists(st.tuples(st.sampled_from((1, 5, 6)), st.sampled_from(("once", "hold", "free"))), max_size=25)
)
def test_what_the_application_did_moves_the_job_and_blames_the_chip_only_where_nobody_held_it(
    steps: list[tuple[int, str]],
) -> None:
    everything = repeat("*", 1, 86_400, at_least=Level.RESTART_REQUEST)
    engine = begin(catalog(row(HBM, Level.RESTART_BUSINESS, user_induced=True), frequency=[everything]))
    holders: list[Said] = []
    blamed, occurred, was_promoted = 0, 0, False
    for at, what in timed(steps):
        if what in ("hold", "free"):
            holders.append((at, what))
            run(engine, [(at, held("npu0", "job-a" if what == "hold" else None))])
            continue
        run(engine, [(at, signal(HBM, what))])
        occurred += 1
        is_free = is_known_to_be_free(holders, at)
        blamed += is_free
        was_promoted = was_promoted or blamed > 0
        assert bool(engine.view().promotions) == was_promoted
        if not was_promoted:
            expected = Handling.RESCHEDULE if occurred >= 3 else Handling.RESTART_JOB
            assert (open_codes(engine), stands(engine)[2]) == ([("die0", HBM)], expected)
