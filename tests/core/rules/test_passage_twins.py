"""A code with a duration and a frequency rule against a dumb twin, which asks the whole history each time.

What is so at a moment (present, in force, held by a ``once``) is a question about all that was said until
then, and what is emitted follows from two moments next to each other.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.catalog.catalog import DurationRule, FrequencyRule
from nodeagent.core.engine import Engine
from nodeagent.core.model import EventKind, Level, Tick
from tests.core.build import LINK_DOWN, begin, catalog, lasting, ns, repeat, row, signal

FAULT, RECOVER, HOLD, WINDOW, RELEASE = 5, 10, 8, 60, 40
END = 10_000

Said = tuple[int, str]
"""In ns: occur, once or recover."""

KINDS = {
    EventKind.RAISED,
    EventKind.CLEARED,
    EventKind.LEVEL_CHANGED,
    EventKind.PROMOTED,
    EventKind.RELEASED,
}


# --------------------------------------------------------------------------- what is so at a moment


def presences(history: list[Said]) -> list[tuple[int, int | None]]:
    """From and to, the last one maybe without an end. A ``once`` is not of them."""
    found: list[tuple[int, int | None]] = []
    for at, what in history:
        is_present = bool(found) and found[-1][1] is None
        if what == "occur" and not is_present:
            found.append((at, None))
        elif what == "recover" and is_present:
            found[-1] = (found[-1][0], at)
    return found


def is_long(since: int, until: int | None, now: int) -> bool:
    return (now if until is None else until) > since + ns(FAULT)


def passages(history: list[Said], now: int) -> list[tuple[int, int | None]]:
    """When the fault went from not timed out to timed out, and when it was gone for too long, if it was."""
    found: list[tuple[int, int | None]] = []
    since_gone: int | None = None
    for since, until in presences(history):
        in_force = bool(found) and found[-1][1] is None
        if in_force and since_gone is not None and since > since_gone + ns(RECOVER):
            found[-1] = (found[-1][0], since_gone + ns(RECOVER) + 1)
            in_force = False
        if not in_force and is_long(since, until, now):
            found.append((since + ns(FAULT) + 1, None))
        since_gone = until
    if found and found[-1][1] is None and since_gone is not None and now > since_gone + ns(RECOVER):
        found[-1] = (found[-1][0], since_gone + ns(RECOVER) + 1)
    return found


def is_in_force(history: list[Said], now: int) -> bool:
    """Or gone for too short a time yet."""
    found = passages(history, now)
    return bool(found) and found[-1][1] is None


def is_present(history: list[Said]) -> bool:
    found = presences(history)
    return bool(found) and found[-1][1] is None


def is_held_by_once(history: list[Said], now: int) -> bool:
    """The newest was heard for no longer than its hold, and no recovery came that had nothing else to end."""
    for index in range(len(history) - 1, -1, -1):
        at, what = history[index]
        before = history[:index]
        if what == "once":
            return now <= at + ns(HOLD)
        if what == "recover" and not is_present(before) and not is_in_force(before, at):
            return False
    return False


def shown(history: list[Said], now: int) -> str:
    """How the condition stands: at the level of the rule, at that of the row, or not at all."""
    if is_in_force(history, now):
        return "rule"
    return "row" if is_present(history) or is_held_by_once(history, now) else ""


def is_kept_alive(history: list[Said], now: int) -> bool:
    """Whether a presence that has lasted continues."""
    found = presences(history)
    return bool(found) and found[-1][1] is None and is_long(*found[-1], now)


def quiet_since(history: list[Said]) -> int:
    """The end of the last presence that had lasted."""
    return max(
        until for since, until in presences(history) if until is not None and is_long(since, until, until)
    )


# --------------------------------------------------------------------------- what is emitted between moments


def moments(history: list[Said]) -> Iterator[tuple[list[Said], int]]:
    """Each time at which anything could change, with what had been said by then."""
    later = sorted({at + ns(span) + 1 for at, _ in history for span in (FAULT, RECOVER, HOLD, RELEASE)})
    for index in range(len(history) + 1):
        now = history[index - 1][0] if index else 0
        until = history[index][0] if index < len(history) else ns(END)
        yield history[:index], now
        yield from ((history[:index], at) for at in later if now < at <= until)


CHANGES = {
    ("", "row"): "raised",
    ("row", "rule"): "level_changed",
    ("rule", "row"): "level_changed",
    ("rule", ""): "cleared",
    ("row", ""): "cleared",
}


def by_hand(history: list[Said], times: int) -> list[tuple[int, str]]:
    emitted: list[tuple[int, str]] = []
    counted: list[int] = []
    before, is_promoted, passed = "", False, 0
    for said, now in moments(history):
        after = shown(said, now)
        if after != before:
            emitted.append((now, CHANGES[before, after]))
            before = after
        begun = [at for at, _ in passages(said, now)]
        fresh, passed = begun[passed:], len(begun)
        if is_promoted and not is_kept_alive(said, now) and now > quiet_since(said) + ns(RELEASE):
            emitted.append((now, "released"))
            is_promoted = False
        for at in fresh if not is_promoted else ():
            counted = [one for one in counted if at - one <= ns(WINDOW)] + [at]
            if len(counted) >= times:
                emitted.append((now, "promoted"))
                counted, is_promoted = [], True
    return emitted


def tables(rule: FrequencyRule, duration: DurationRule) -> Engine:
    return begin(catalog(row(LINK_DOWN), duration=[duration], frequency=[rule], once_hold_ns=ns(HOLD)))


gaps = st.sampled_from((0, 1, 4, 5, 6, 8, 9, 10, 11, 16, 41))
lengths = st.sampled_from((1, 4, 5, 6, 8))
anything = st.tuples(gaps, st.sampled_from(("occur", "recover", "once"))).map(lambda one: [one])
presence = st.builds(lambda gap, length: [(gap, "occur"), (length, "recover")], gaps, lengths)
blocks = st.lists(st.one_of(anything, presence, presence), max_size=16)
"""What is said, each with the seconds since what was said before."""


@pytest.mark.parametrize("code", [LINK_DOWN, "*"])
@settings(max_examples=300, deadline=None)
@given(said=blocks, times=st.integers(1, 2), with_ticks=st.booleans())
def test_all_that_is_emitted_follows_from_the_whole_history(
    code: str, said: list[list[tuple[int, str]]], times: int, with_ticks: bool
) -> None:
    at_least = Level.RESTART_REQUEST if code == "*" else None
    rule = repeat(code, times, WINDOW, release_ns=ns(RELEASE), at_least=at_least)
    engine = tables(rule, lasting(LINK_DOWN, FAULT, RECOVER, level=Level.PRE_SEPARATE_NPU))
    now, history, emitted = ns(1), list[Said](), list[tuple[int, str]]()
    for gap, what in (step for block in said for step in block):
        now += ns(gap)
        history.append((now, what))
        if with_ticks:
            emitted += [
                (one.at_ns, one.kind.value) for one in engine.step(now, Tick()).events if one.kind in KINDS
            ]
        outcome = engine.step(now, signal(LINK_DOWN, what))
        emitted += [(one.at_ns, one.kind.value) for one in outcome.events if one.kind in KINDS]
    emitted += [
        (one.at_ns, one.kind.value) for one in engine.step(ns(END), Tick()).events if one.kind in KINDS
    ]
    assert emitted == by_hand(history, times)
