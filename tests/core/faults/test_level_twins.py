"""Levels, verdicts and what is open, against dumb twins that go through the whole history anew."""

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.model import Handling, Level, Verdict
from tests.core.build import (
    CHIP_LEVELS,
    begin,
    catalog,
    ns,
    open_codes,
    related,
    row,
    run,
    signal,
    stands,
    wait,
)

moderately = settings(max_examples=200, deadline=None)
_gaps = st.sampled_from((1, 4, 9, 10, 11, 29, 30, 31))

# --------------------------------------------------------------------------- unknown codes on two chips

UNKNOWN = "8BADF00D"
Said = tuple[int, int, str, int | None]
"""At which second, on which chip, what, with which severity."""


def is_open(history: list[Said], chip: int) -> bool:
    own = [what for _, on, what, _ in history if on == chip]
    return bool(own) and own[-1] == "occur"


def newest(history: list[Said], chip: int) -> int | None:
    return max((at for at, on, what, _ in history if on == chip and what == "occur"), default=None)


def has_met_the_other(history: list[Said], chip: int) -> bool:
    """Since the chip's condition opened, there was an occurrence after which both chips' newest were near."""
    recoveries = [index for index, (_, on, what, _) in enumerate(history) if on == chip and what != "occur"]
    for end in range(recoveries[-1] + 1 if recoveries else 0, len(history)):
        so_far = history[: end + 1]
        own, other = newest(so_far, chip), newest(so_far, 1 - chip)
        if own is None or other is None or history[end][2] != "occur":
            continue
        if is_open(so_far, chip) and abs(own - other) <= 30:
            return True
    return False


def unknown_level(history: list[Said], chip: int) -> Level:
    severities = [severity for _, _, _, severity in history if severity is not None]
    if severities:
        return Level.NOT_HANDLE if severities[-1] <= 1 else Level.SEPARATE_NPU
    return Level.PRE_SEPARATE_NPU if has_met_the_other(history, chip) else Level.SEPARATE_NPU


_severities = st.sampled_from((None,) * 12 + (1, 2))


@moderately
@given(
    st.lists(
        st.tuples(_gaps, st.integers(0, 1), st.sampled_from(("occur", "occur", "recover")), _severities),
        max_size=20,
    )
)
def test_an_unknown_code_is_as_severe_as_the_whole_history_says(
    steps: list[tuple[int, int, str, int | None]],
) -> None:
    engine = begin(catalog(), chips=2)
    now, history = 1, list[Said]()
    for gap, chip, what, severity in steps:
        now += gap
        history.append((now, chip, what, severity))
        run(engine, [(now, signal(UNKNOWN, what, f"npu{chip}", severity=severity))])
        expected = {f"die{chip}": unknown_level(history, chip) for chip in (0, 1) if is_open(history, chip)}
        assert {one.device_id: one.level for one in engine.view().conditions} == expected


# --------------------------------------------------------------------------- what ends another fault

FAULT, END = "80E18005", "80E18006"


@moderately
@given(
    st.lists(st.tuples(_gaps, st.sampled_from((FAULT, END)), st.integers(0, 1)), max_size=20),
    st.sampled_from((0, 10)),
    st.sampled_from(("device", "node")),
)
def test_a_cancelled_fault_is_one_that_its_end_came_after(
    steps: list[tuple[int, str, int]], within: int, same: str
) -> None:
    rule = related(END, FAULT, within_s=within, then="cancel", same=same)
    engine = begin(catalog(row(FAULT), row(END, notice=True), relation=[rule]), chips=2)
    now, expected = 1, dict[str, int]()
    for gap, code, chip in steps:
        now += gap
        run(engine, [(now, signal(code, device=f"npu{chip}"))])
        if code == FAULT:
            expected[f"die{chip}"] = now
        else:
            expected = {
                device: at
                for device, at in expected.items()
                if (same == "device" and device != f"die{chip}") or (within and at < now - within)
            }
        assert sorted(open_codes(engine)) == sorted((device, FAULT) for device in expected)


# --------------------------------------------------------------------------- levels that change with time


@moderately
@given(st.lists(st.tuples(_gaps, st.sampled_from(("occur", "once", "recover"))), max_size=15))
def test_restart_request_is_tolerated_for_as_long_as_it_lasts_and_no_longer(
    steps: list[tuple[int, str]],
) -> None:
    code = Level.RESTART_REQUEST.value
    engine = begin(catalog(request_tolerance_ns=ns(10), once_hold_ns=ns(10)))
    now, present_since, seen_last = 1, -1, -1
    for gap, what in steps:
        for second in range(now, now + gap):
            wait(engine, second, extra_ns=1)
            lasts = second - present_since >= 10
            expected = (Verdict.ALLOW, Handling.NONE)
            if present_since >= 0 and lasts:
                expected = (Verdict.ISOLATE, Handling.RESCHEDULE)
            elif present_since >= 0 or (seen_last >= 0 and second - seen_last < 10):
                expected = (Verdict.NO_NEW_JOBS, Handling.RERUN_REQUEST)
            assert stands(engine)[1:] == expected
        now += gap
        run(engine, [(now, signal(code, what))])
        if what == "occur" and present_since < 0:
            present_since = now
        elif what == "recover":
            present_since = seen_last = -1
        elif what == "once" and present_since < 0:
            seen_last = now


@moderately
@given(
    st.lists(
        st.tuples(st.sampled_from(CHIP_LEVELS), st.sampled_from(("occur", "occur", "recover"))), max_size=20
    )
)
def test_the_level_is_the_first_by_precedence_of_what_is_open(steps: list[tuple[Level, str]]) -> None:
    engine = begin(catalog())
    by_precedence = [*CHIP_LEVELS[::-1]]
    open_now: set[Level] = set()
    for second, (level, what) in enumerate(steps, 1):
        run(engine, [(second, signal(level.value, what))])
        open_now = open_now | {level} if what == "occur" else open_now - {level}
        expected = next((one for one in by_precedence if one in open_now), Level.NOT_HANDLE)
        assert stands(engine)[0] is expected
