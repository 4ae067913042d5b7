"""The shipped rules on signals, to the microsecond: repetition, links that go down, requests, bad input."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Row
from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Kind, Level, Recovery
from tests.cli.conftest import Ran, Replay, advance, events_of, moved, signal
from tests.shipped import shipped_catalog


def short(ran: Ran) -> list[str]:
    """What happened, without the raising and clearing that each signal causes."""
    return [line for line in events_of(ran) if line.split()[1] not in ("raised", "cleared")]


# --------------------------------------------------------------------------- repetition


def test_an_ai_core_that_fails_twice_in_a_day_is_separated_at_the_second(replay: Replay) -> None:
    lines = [
        signal("00:00:00.5", "npu0", "80C98000", "once"),
        signal("23:00:00.25", "npu0", "80C98000", "once"),
        advance("23:59:59"),
    ]

    assert short(replay(lines)) == [
        "23:00:00.250000Z promoted npu0 80C98000 ManuallySeparateNPU ISOLATE RESCHEDULE"
    ]


@pytest.mark.parametrize(
    ("second", "promoted"),
    [
        ("2026-01-03T00:00:00.5Z", ["2026-01-03T00:00:00.500000Z"]),
        ("2026-01-03T00:00:00.500001Z", []),
    ],
)
def test_exactly_a_day_apart_is_within_a_day(replay: Replay, second: str, promoted: list[str]) -> None:
    lines = [
        signal("00:00:00.5", "npu0", "80C98000", "once"),
        moved(signal("00:00:00", "npu0", "80C98000", "once"), second),
    ]

    assert [event["at"] for event in replay(lines).json if event["kind"] == "promoted"] == promoted


def test_where_there_are_two_chips_it_is_separated_30_s_later(replay: Replay) -> None:
    lines = [
        signal("00:00:00", "npu1", "81078603"),
        signal("01:00:00", "npu0", "80C98000", "once"),
        signal("02:00:00", "npu0", "80C98000", "once"),
    ]

    assert short(replay([*lines, advance("02:00:30")]))[1:] == []
    assert short(replay([*lines, advance("02:00:30.000001")]))[1:] == [
        "02:00:30.000000Z promoted npu0 80C98000 ManuallySeparateNPU ISOLATE RESCHEDULE"
    ]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("01:59:29.999999", "02:00:30.000000Z promoted"),
        ("01:59:30", "02:00:00.000000Z suppressed"),
        ("02:00:15", "02:00:15.000000Z suppressed"),
        ("02:00:30", "02:00:30.000000Z suppressed"),
        ("02:00:30.000001", "02:00:30.000000Z promoted"),
    ],
)
def test_another_chip_that_shows_it_within_30_s_suppresses_it(
    replay: Replay, shown: str, expected: str
) -> None:
    lines = [
        signal("01:00:00", "npu0", "80C98000", "once"),
        signal("02:00:00", "npu0", "80C98000", "once"),
        signal(shown, "npu1", "80C98000", "once"),
        advance("02:00:31"),
    ]

    others = [line for line in short(replay(lines)) if "verdict_changed" not in line]
    assert [line.split(" npu0 ")[0] for line in others] == [expected]


def test_the_memory_controllers_parity_error_is_separated_at_the_third(replay: Replay) -> None:
    lines = [signal(f"{hour}:00:00", "npu0", "80E18005", "once") for hour in ("01", "09", "17")]

    assert short(replay(lines[:2])) == []
    assert short(replay(lines)) == [
        "17:00:00.000000Z promoted npu0 80E18005 ManuallySeparateNPU ISOLATE RESCHEDULE"
    ]


_APART_NS = 10 * 60 * SECOND_NS


def _repeating() -> list[Row]:
    """Every shipped code of a chip at RestartRequest or worse that no rule of its own names."""
    catalog = shipped_catalog()
    named = {code for rule in catalog.frequency for code in rule.codes}
    named |= {code for rule in catalog.duration for code in rule.codes}
    named |= {rule.code for rule in catalog.relation if rule.within_ns >= _APART_NS}
    return [
        row
        for row in catalog.rows.values()
        if row.kind in (Kind.CHIP, Kind.PUBLIC)
        and PRECEDENCE[row.level] >= PRECEDENCE[Level.RESTART_REQUEST]
        and row.code not in named
        and not row.notice
        and not row.code.endswith("*")
    ]


_BATCH = 40
"""Codes in one file, ten minutes apart so that none is another's companion: three rounds within a day."""
REPEATING = _repeating()
BATCHES = [REPEATING[start : start + _BATCH] for start in range(0, len(REPEATING), _BATCH)]
_SOURCES = {"amd": "amd", "ascend": "ascend", "nvidia": "nvidia", "nodeagent": "agent"}


@pytest.mark.parametrize("rows", BATCHES, ids=lambda rows: f"{rows[0].code}-{rows[-1].code}")
def test_any_code_that_asks_for_more_than_a_look_is_separated_at_its_third_in_a_day(
    replay: Replay, rows: Sequence[Row]
) -> None:
    """But the application's own faults, on a chip that a process may have held."""
    begun = datetime.fromisoformat("2026-01-02T00:00:00+00:00")
    times = [begun + timedelta(minutes=10 * index) for index in range(3 * len(rows))]
    lines = [
        moved(signal("00:00:00", "npu0", row.code, "once", source=_source(row)), at.isoformat())
        for at, row in zip(times, [*rows, *rows, *rows], strict=True)
    ]

    promoted = [
        (event["code"], event["condition_level"], datetime.fromisoformat(event["at"]))
        for event in replay(lines).json
        if event["kind"] == "promoted"
    ]

    thirds = zip(rows, times[2 * len(rows) :], strict=True)
    assert promoted == [
        (row.code, "ManuallySeparateNPU", at) for row, at in thirds if not _is_of_the_job(row)
    ]


def _is_of_the_job(row: Row) -> bool:
    return row.user_induced or row.recovery is Recovery.NONE


def _source(row: Row) -> str:
    return "public" if row.kind is Kind.PUBLIC else _SOURCES[row.vendor]


def test_such_a_file_holds_every_code_that_has_no_rule_of_its_own() -> None:
    assert len(REPEATING) > 650
    assert {"80DB8000", "80C98002", "80C98009"} <= {row.code for row in REPEATING}


# --------------------------------------------------------------------------- links


def test_a_link_down_for_exactly_20_s_is_not_judged_and_longer_drains_the_chip(replay: Replay) -> None:
    lines = [signal("03:00:00.000", "npu0", "81078603"), advance("03:00:20.000")]
    raised = "03:00:00.000000Z raised npu0 81078603 NotHandleFault ALLOW NONE"
    drained = "03:00:20.000000Z level_changed npu0 81078603 PreSeparateNPU NO_NEW_JOBS NONE"

    assert events_of(replay(lines)) == [raised]
    assert events_of(replay([*lines, advance("03:00:20.000001")])) == [raised, drained]


def test_a_link_up_for_exactly_60_s_is_still_open_and_longer_clears(replay: Replay) -> None:
    lines = [
        signal("03:00:00", "npu0", "81078603"),
        signal("03:10:00", "npu0", "81078603", "recover"),
        advance("03:11:00.000"),
    ]

    assert [line for line in events_of(replay(lines)) if " cleared " in line] == []
    assert events_of(replay([*lines, advance("03:11:00.000001")]))[2:] == [
        "03:11:00.000000Z cleared npu0 81078603 PreSeparateNPU ALLOW NONE"
    ]


def _flaps(times: int) -> list[str]:
    """Down for 21 s, once an hour."""
    return [
        line
        for hour in range(times)
        for line in (
            signal(f"{hour:02}:00:00", "npu0", "81078603"),
            signal(f"{hour:02}:00:21", "npu0", "81078603", "recover"),
        )
    ]


def test_a_link_that_is_down_for_long_five_times_a_day_is_separated_for_48_h(replay: Replay) -> None:
    flaps = _flaps(5)
    released = "2026-01-04T04:00:21.000000Z"

    until = replay([*flaps, moved(advance("05:00:00"), released)])
    past = replay([*flaps, moved(advance("05:00:00"), "2026-01-04T04:00:21.000001Z")])

    assert [line for line in short(until) if "level_changed" not in line] == [
        "04:00:20.000000Z promoted npu0 81078603 ManuallySeparateNPU ISOLATE RESCHEDULE"
    ]
    assert [(event["at"], event["verdict"]) for event in past.json if event["kind"] == "released"] == [
        (released, "ALLOW")
    ]


def test_short_breaks_of_a_link_are_no_time_outs(replay: Replay) -> None:
    short_breaks = [
        line
        for hour in range(20)
        for line in (
            signal(f"{hour:02}:30:00", "npu0", "81078603"),
            signal(f"{hour:02}:30:20", "npu0", "81078603", "recover"),
        )
    ]

    assert [line for line in short(replay([*_flaps(4), *short_breaks])) if "promoted" in line] == []


# --------------------------------------------------------------------------- requests and jobs


def _configure(configuration: Path, *lines: str) -> None:
    """Adds keys of ``[agent]``."""
    configuration.write_text("\n".join([configuration.read_text(), *lines]))


@pytest.mark.parametrize(
    ("mode", "past"),
    [("rescheduling", "ISOLATE RESCHEDULE"), ("graceful", "ISOLATE STOP_RESET_RESTART")],
)
def test_a_failed_request_is_tolerated_for_60_s(
    replay: Replay, configuration: Path, mode: str, past: str
) -> None:
    _configure(configuration, f'mode = "{mode}"')
    lines = [signal("03:00:00", "npu0", "80DB8000"), advance("03:01:00.000")]
    tolerated = ["03:00:00.000000Z raised npu0 80DB8000 RestartRequest NO_NEW_JOBS RERUN_REQUEST"]

    assert events_of(replay(lines)) == tolerated
    assert events_of(replay([*lines, advance("03:01:00.000001")])) == [
        *tolerated,
        f"03:01:00.000000Z verdict_changed npu0  - {past}",
    ]


def test_without_tolerance_the_chip_is_isolated_at_once(replay: Replay, configuration: Path) -> None:
    _configure(configuration, 'request_tolerance = "0s"')

    assert events_of(replay([signal("03:00:00", "npu0", "80DB8000"), advance("03:02:00")])) == [
        "03:00:00.000000Z raised npu0 80DB8000 RestartRequest ISOLATE RESCHEDULE"
    ]


def test_bad_input_restarts_the_job_from_the_third_in_a_day_moves_it_and_isolates_nothing(
    replay: Replay,
) -> None:
    lines = [signal(f"{hour}:00:00", "npu0", "80C98002", "once") for hour in ("00", "06", "12", "18", "23")]

    ran = replay([*lines, advance("23:59:00")])

    raised = [(event["at"][11:16], event["handling"]) for event in ran.json if event["kind"] == "raised"]
    assert raised == [
        ("00:00", "RESTART_JOB"),
        ("06:00", "RESTART_JOB"),
        ("12:00", "RESCHEDULE"),
        ("18:00", "RESCHEDULE"),
        ("23:00", "RESCHEDULE"),
    ]
    assert {event["verdict"] for event in ran.json} == {"ALLOW"}
    assert {event["kind"] for event in ran.json} == {"raised", "cleared"}
