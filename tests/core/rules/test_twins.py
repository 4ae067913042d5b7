"""Each rule against a dumb twin that recomputes everything from the whole history."""

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.model import Input, Tick, Window
from nodeagent.core.rules.windows import count
from nodeagent.core.state.cells import Timers
from tests.core.build import HBM, LINK_DOWN, begin, catalog, lasting, ns, repeat, row, signal

moderately = settings(max_examples=150, deadline=None)
_gaps = st.sampled_from((0, 1, 2, 3, 5, 9, 10, 11, 20, 21))


@moderately
@given(st.lists(_gaps, max_size=30), st.integers(1, 5), st.sampled_from((0, 3, 10)))
def test_the_sliding_window_is_a_count_over_the_whole_history(
    gaps: list[int], times: int, burst: int
) -> None:
    rule = repeat(HBM, times, window_s=10)
    window = Window(device_id="die0", code=HBM, rule=rule.id)
    now, last, fired_since = 100, None, list[int]()
    for gap in gaps:
        now += gap
        in_burst = burst > 0 and last is not None and now - last <= burst
        last = now
        if not in_burst:
            fired_since.append(now)
        expected = not in_burst and sum(now - 10 <= at <= now for at in fired_since) >= times
        window, fired = count(window, rule, ns(now), within_burst_ns=ns(burst))
        assert fired == expected
        if fired:
            window = Window(device_id="die0", code=HBM, rule=rule.id, burst_last_ns=window.burst_last_ns)
            fired_since = []


def levels_by_hand(assertions: list[tuple[int, str]], until: int) -> list[tuple[int, str]]:
    """What the rule of 10 s and 20 s makes of these occurs and recoveries, from its definition, in ns.

    Walks the whole history: presences, then for each the level and the end that follow from it.
    """
    emitted: list[tuple[int, str]] = []
    is_open, in_force, since, gone = False, False, 0, -1
    for at, what in [*assertions, (until, "end")]:
        if is_open and gone >= 0 and at > gone + ns(20):
            emitted.append((gone + ns(20) + 1, "cleared"))
            is_open, in_force, gone = False, False, -1
        if is_open and gone < 0 and not in_force and at > since + ns(10):
            emitted.append((since + ns(10) + 1, "level_changed"))
            in_force = True
        if what == "occur":
            if not is_open:
                emitted.append((at, "raised"))
                is_open, since = True, at
            elif gone >= 0:
                since, gone = at, -1
        elif what == "recover" and is_open and gone < 0:
            if in_force:
                gone = at
            else:
                emitted.append((at, "cleared"))
                is_open = False
    return emitted


@moderately
@given(st.lists(st.tuples(_gaps, st.sampled_from(("occur", "recover"))), max_size=20), st.booleans())
def test_the_duration_rule_emits_what_the_whole_history_says(
    steps: list[tuple[int, str]], with_ticks: bool
) -> None:
    engine = begin(catalog(row(LINK_DOWN), duration=[lasting(LINK_DOWN, 10, 20)]))
    now, history, emitted = 1, list[tuple[int, str]](), list[tuple[int, str]]()
    inputs: list[tuple[int, Input]] = []
    for gap, assertion in steps:
        now += gap
        history.append((ns(now), assertion))
        inputs += [(ns(now), Tick())] if with_ticks else []
        inputs.append((ns(now), signal(LINK_DOWN, assertion)))
    inputs.append((ns(now + 1000), Tick()))
    for at_ns, given_next in inputs:
        emitted += [(event.at_ns, event.kind.value) for event in engine.step(at_ns, given_next).events]
    assert emitted == levels_by_hand(history, ns(now + 1000))


@moderately
@given(
    st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 40)), max_size=60), st.integers(0, 40)
)
def test_timers_fire_as_if_all_were_looked_at_each_time(
    moves: list[tuple[int, int | None]], until: int
) -> None:
    timers, plain = Timers(), dict[tuple[str, ...], int]()
    for name, at_ns in moves:
        key = (f"timer{name}",)
        timers.set(key, at_ns)
        if at_ns is None:
            plain.pop(key, None)
        else:
            plain[key] = at_ns
        assert timers.next_ns() == min(plain.values(), default=None)
    fired = []
    while (due := timers.pop_due(until)) is not None:
        fired.append(due)
    assert fired == sorted((at_ns, key) for key, at_ns in plain.items() if at_ns <= until)
    assert timers.next_ns() == min((at_ns for at_ns in plain.values() if at_ns > until), default=None)
