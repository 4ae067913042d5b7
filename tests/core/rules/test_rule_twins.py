"""The relation, threshold and counter rules against dumb twins that look through the whole history anew."""

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.model import Input, Level, Tick
from tests.core.build import (
    begin,
    catalog,
    edge,
    hot,
    mark,
    ns,
    open_codes,
    related,
    rising,
    row,
    run,
    signal,
)

moderately = settings(max_examples=150, deadline=None)
WITHIN = 10
ROOT, CODE = "80E01801", "80C98009"
Said = tuple[int, str, str]
"""When, of which code, occur or recover."""

_gaps = st.sampled_from((0, 1, 4, 9, 10, 11, 20))
histories = st.lists(
    st.tuples(_gaps, st.sampled_from((ROOT, CODE)), st.sampled_from(("occur", "occur", "recover"))),
    max_size=25,
)


def timed(steps: list[tuple[int, str, str]]) -> list[Said]:
    now, out = 1, []
    for gap, code, what in steps:
        now += gap
        out.append((now, code, what))
    return out


def occurrences(history: list[Said], code: str) -> list[int]:
    return [at for at, of, what in history if (of, what) == (code, "occur")]


def is_near_a_root(history: list[Said], index: int) -> bool:
    return any(history[index][0] - at <= WITHIN for at in occurrences(history[:index], ROOT))


def companion_is_open(history: list[Said]) -> bool:
    """Looks back for the last thing that decided it."""
    for index in range(len(history) - 1, -1, -1):
        at, code, what = history[index]
        if (code, what) == (CODE, "recover"):
            return False
        if (code, what) == (CODE, "occur"):
            return not (is_there(history[:index], ROOT) and is_near_a_root(history, index))
        if (code, what) == (ROOT, "recover"):
            return is_there(history[:index], CODE)
        if (code, what) == (ROOT, "occur"):
            before = occurrences(history[:index], CODE)
            if before and at - before[-1] <= WITHIN:
                return False
    return False


def is_there(history: list[Said], code: str) -> bool:
    return [what for _, of, what in history if of == code][-1:] == ["occur"]


@moderately
@given(histories)
def test_a_companion_is_open_where_its_newest_occurrence_has_no_open_root_near(
    steps: list[tuple[int, str, str]],
) -> None:
    rows = (row(ROOT, Level.RESTART_BUSINESS), row(CODE, Level.RESTART_REQUEST))
    engine = begin(catalog(*rows, relation=[related(CODE, ROOT, within_s=WITHIN)]))
    history = timed(steps)
    for end, (at, code, what) in enumerate(history, 1):
        run(engine, [(at, signal(code, what))])
        roots = [what for _, of, what in history[:end] if of == ROOT]
        expected = {ROOT} if roots and roots[-1] == "occur" else set()
        expected |= {CODE} if companion_is_open(history[:end]) else set()
        # What is there is never without a fault that shows it.
        assert expected or not is_there(history[:end], CODE)
        assert {code for _, code in open_codes(engine)} == expected


def has_paired(history: list[Said]) -> bool:
    """Whether, since the code opened, there was a moment when the newest two lay near each other."""
    recoveries = [index for index, (_, of, what) in enumerate(history) if (of, what) == (CODE, "recover")]
    since = recoveries[-1] + 1 if recoveries else 0
    for end in range(since, len(history)):
        own = occurrences(history[since : end + 1], CODE)
        others = occurrences(history[: end + 1], ROOT)
        if own and others and abs(own[-1] - others[-1]) <= WITHIN:
            return True
    return False


@moderately
@given(histories)
def test_a_pair_has_its_level_from_the_moment_the_two_were_near(steps: list[tuple[int, str, str]]) -> None:
    rule = related(CODE, ROOT, within_s=WITHIN, then="level", level=Level.SEPARATE_NPU)
    engine = begin(catalog(row(ROOT), row(CODE), relation=[rule]))
    history = timed(steps)
    for end, (at, code, what) in enumerate(history, 1):
        run(engine, [(at, signal(code, what))])
        for condition in engine.view().conditions:
            if condition.code == CODE:
                paired = has_paired(history[:end])
                assert condition.level is (Level.SEPARATE_NPU if paired else Level.NOT_HANDLE)


def crossings_by_hand(edges: list[tuple[int, bool]]) -> list[tuple[int, str]]:
    """Of every unbroken time above: whether it was longer than ten seconds, and where it ended."""
    emitted: list[tuple[int, str]] = []
    spans: list[list[int]] = []
    for at, above in edges:
        if above and (not spans or len(spans[-1]) == 2):
            spans.append([at])
        elif not above and spans and len(spans[-1]) == 1:
            spans[-1].append(at)
    for begun, *ended in spans:
        if not ended or ended[0] > begun + 10:
            emitted.append((ns(begun + 10) + 1, "raised"))
            emitted += [(ns(end), "cleared") for end in ended]
    return emitted


@moderately
@given(st.lists(st.tuples(_gaps, st.booleans()), max_size=25))
def test_the_threshold_rule_reports_every_time_above_that_lasted(steps: list[tuple[int, bool]]) -> None:
    engine = begin(catalog(row("HOT"), threshold=[hot("HOT", 10)]))
    now, edges = 1, list[tuple[int, bool]]()
    for gap, above in steps:
        now += gap
        edges.append((now, above))
    inputs: list[tuple[float, Input]] = [(at, edge(above)) for at, above in edges]
    events = run(engine, [*inputs, (now + 100, Tick())])
    assert [(event.at_ns, event.kind.value) for event in events] == crossings_by_hand(edges)


@moderately
@given(st.lists(st.tuples(st.sampled_from((1, 5, 29, 30, 60, 61)), st.integers(0, 60)), max_size=25))
def test_the_counter_rule_is_a_sum_over_the_whole_history(steps: list[tuple[int, int]]) -> None:
    engine = begin(catalog(row("STORM"), counter=[rising("STORM", 50, window_s=60)]))
    now, values, rises, met = 1, list[int](), list[tuple[int, int]](), list[int]()
    for gap, value in steps:
        now += gap
        run(engine, [(now, mark(value))])
        if values and value != values[-1]:
            rises.append((now, value - values[-1] if value > values[-1] else value))
            if sum(by for at, by in rises if now - 60 <= at) >= 50:
                met.append(now)
        values.append(value)
        expected = bool(met) and now <= met[-1] + 60
        assert bool(open_codes(engine)) == expected
