"""Replay shows what the rules make of signals, to the microsecond and in the file's own time."""

import pytest

from tests.cli.conftest import Replay, advance, events_of, signal

LINK_DOWN = """
kind = "chip"
vendor = "ascend"

[codes.81078603]
name = "link down"
level = "NotHandleFault"
clear_on = ["recover"]
description = "The network port has no link."
action = "Check the cable."

[[duration]]
id = "link-down"
codes = ["81078603"]
fault_timeout = "20s"
recover_timeout = "60s"
level = "PreSeparateNPU"
"""

THREE_IN_A_DAY = """
kind = "chip"
vendor = "ascend"

[codes.80C98000]
name = "AI core error"
level = "RestartBusiness"
clear_on = ["recover"]
description = "An AI core failed."
action = "Restart the job."

[[frequency]]
id = "ai-core-repeat"
codes = ["80C98000"]
times = 3
time_window = "24h"
level = "ManuallySeparateNPU"
"""

REQUEST = """
kind = "chip"
vendor = "ascend"

[codes.80E00001]
name = "request lost"
level = "RestartRequest"
clear_on = ["recover"]
description = "One inference request failed."
action = "Run the request again."
"""

USER_INDUCED = """
kind = "chip"
vendor = "ascend"

[codes.80C98002]
name = "out of bounds"
level = "RestartBusiness"
user_induced = true
clear_on = ["recover"]
description = "The program accessed memory that is not its own."
action = "Check the program."
"""


def test_a_fault_gone_after_exactly_its_time_out_was_never_judged(replay: Replay) -> None:
    lines = [
        signal("03:00:00.000", "npu0", "81078603"),
        signal("03:00:20.000", "npu0", "81078603", "recover"),
        advance("04:00:00"),
    ]

    assert events_of(replay(lines, LINK_DOWN)) == [
        "03:00:00.000000Z raised npu0 81078603 NotHandleFault ALLOW NONE",
        "03:00:20.000000Z cleared npu0 81078603 NotHandleFault ALLOW NONE",
    ]


def test_a_fault_longer_than_its_time_out_takes_the_rules_level_until_it_is_gone_for_long(
    replay: Replay,
) -> None:
    lines = [
        signal("03:00:00.000", "npu0", "81078603"),
        signal("03:00:20.001", "npu0", "81078603", "recover"),
        advance("03:01:20.001"),
    ]
    judged = [
        "03:00:00.000000Z raised npu0 81078603 NotHandleFault ALLOW NONE",
        "03:00:20.000000Z level_changed npu0 81078603 PreSeparateNPU NO_NEW_JOBS NONE",
    ]

    assert events_of(replay(lines, LINK_DOWN)) == judged
    assert events_of(replay([*lines, advance("03:01:20.002")], LINK_DOWN)) == [
        *judged,
        "03:01:20.001000Z cleared npu0 81078603 PreSeparateNPU ALLOW NONE",
    ]


def test_the_third_time_in_a_day_isolates_the_only_chip_at_once(replay: Replay) -> None:
    lines = [
        signal("01:00:00", "npu0", "80C98000", "once"),
        signal("09:00:00", "npu0", "80C98000", "once"),
        signal("17:00:00", "npu0", "80C98000", "once"),
    ]

    assert events_of(replay(lines, THREE_IN_A_DAY)) == [
        "01:00:00.000000Z raised npu0 80C98000 RestartBusiness ISOLATE RESCHEDULE",
        "01:01:00.000000Z cleared npu0 80C98000 RestartBusiness ALLOW NONE",
        "09:00:00.000000Z raised npu0 80C98000 RestartBusiness ISOLATE RESCHEDULE",
        "09:01:00.000000Z cleared npu0 80C98000 RestartBusiness ALLOW NONE",
        "17:00:00.000000Z raised npu0 80C98000 RestartBusiness ISOLATE RESCHEDULE",
        "17:00:00.000000Z promoted npu0 80C98000 ManuallySeparateNPU ISOLATE RESCHEDULE",
    ]


def test_a_code_that_another_chip_of_the_file_shows_too_blames_neither(replay: Replay) -> None:
    lines = [
        signal("01:00:00", "npu0", "80C98000", "once"),
        signal("09:00:00", "npu0", "80C98000", "once"),
        signal("17:00:00", "npu0", "80C98000", "once"),
        signal("17:00:30", "npu1", "80C98000", "once"),
        advance("17:00:40"),
    ]

    assert events_of(replay(lines, THREE_IN_A_DAY))[4:] == [
        "17:00:00.000000Z raised npu0 80C98000 RestartBusiness ISOLATE RESCHEDULE",
        "17:00:30.000000Z raised npu1 80C98000 RestartBusiness ISOLATE RESCHEDULE",
        "17:00:30.000000Z suppressed npu0 80C98000 ManuallySeparateNPU ISOLATE RESCHEDULE",
    ]


def test_a_chip_that_the_file_names_only_later_makes_the_promotion_wait(replay: Replay) -> None:
    lines = [
        signal("01:00:00", "npu0", "80C98000", "once"),
        signal("09:00:00", "npu0", "80C98000", "once"),
        signal("17:00:00", "npu0", "80C98000", "once"),
        signal("18:00:00", "npu1", "80C98000", "once"),
    ]

    assert events_of(replay(lines, THREE_IN_A_DAY))[5:7] == [
        "17:00:30.000000Z promoted npu0 80C98000 ManuallySeparateNPU ISOLATE RESCHEDULE",
        "17:01:00.000000Z cleared npu0 80C98000 RestartBusiness ISOLATE RESCHEDULE",
    ]


def test_a_failed_request_is_run_again_and_past_the_tolerance_the_chip_is_left(replay: Replay) -> None:
    lines = [signal("03:00:00", "npu0", "80E00001"), advance("03:01:00.000")]
    tolerated = ["03:00:00.000000Z raised npu0 80E00001 RestartRequest NO_NEW_JOBS RERUN_REQUEST"]

    assert events_of(replay(lines, REQUEST)) == tolerated
    assert events_of(replay([*lines, advance("03:01:00.001")], REQUEST)) == [
        *tolerated,
        "03:01:00.000000Z verdict_changed npu0  - ISOLATE RESCHEDULE",
    ]


def test_the_applications_own_faults_isolate_nothing_and_the_third_moves_the_job(replay: Replay) -> None:
    lines = []
    for hour in ("01", "02", "03"):
        lines.append(signal(f"{hour}:00:00", "npu0", "80C98002"))
        lines.append(signal(f"{hour}:00:01", "npu0", "80C98002", "recover"))

    ran = replay(lines, USER_INDUCED)

    assert [line for line in events_of(ran) if " cleared " not in line] == [
        "01:00:00.000000Z raised npu0 80C98002 RestartBusiness ALLOW RESTART_JOB",
        "02:00:00.000000Z raised npu0 80C98002 RestartBusiness ALLOW RESTART_JOB",
        "03:00:00.000000Z raised npu0 80C98002 RestartBusiness ALLOW RESCHEDULE",
    ]
    assert {event["user_induced"] for event in ran.json if event["kind"] == "raised"} == {True}


def test_lines_are_taken_in_order_of_time_and_equal_times_in_their_order(replay: Replay) -> None:
    lines = [
        signal("05:00:00", "npu1", "80E00001"),
        signal("04:00:00", "npu1", "80E00001", "recover"),
        signal("04:00:00", "npu0", "80E00001"),
        signal("03:59:59", "npu1", "80E00001"),
    ]

    assert events_of(replay(lines, REQUEST))[:4] == [
        "03:59:59.000000Z raised npu1 80E00001 RestartRequest NO_NEW_JOBS RERUN_REQUEST",
        "04:00:00.000000Z cleared npu1 80E00001 RestartRequest ALLOW NONE",
        "04:00:00.000000Z raised npu0 80E00001 RestartRequest NO_NEW_JOBS RERUN_REQUEST",
        "04:01:00.000000Z verdict_changed npu0  - ISOLATE RESCHEDULE",
    ]


def test_an_event_has_the_fields_that_others_read(replay: Replay) -> None:
    (event,) = replay([signal("03:00:00", "npu0", "80E00001", evidence={"why": "x"})], REQUEST).json

    assert {key: event[key] for key in list(event)[:14]} == {
        "seq": 0,
        "at": "2026-01-02T03:00:00.000000Z",
        "kind": "raised",
        "code": "80E00001",
        "name": "request lost",
        "device": "npu0",
        "level": "RestartRequest",
        "condition_level": "RestartRequest",
        "verdict": "NO_NEW_JOBS",
        "handling": "RERUN_REQUEST",
        "condition_id": "npu0/80E00001#1",
        "user_induced": False,
        "evidence": {"why": "x"},
        "reasons": [
            {
                "kind": "condition",
                "id": "npu0/80E00001#1",
                "code": "80E00001",
                "level": "RestartRequest",
                "text": "request lost",
            }
        ],
    }


def test_other_tables_are_compared_by_what_only_one_of_them_tells(
    replay: Replay, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stricter = tmp_path_factory.mktemp("stricter")
    (stricter / "own.toml").write_text(REQUEST.replace('"RestartRequest"', '"SeparateNPU"'))
    lines = [
        signal("03:00:00", "npu0", "80E00001"),
        signal("03:00:01", "node", "OOM", "once", source="kmsg"),
    ]

    ran = replay(lines, REQUEST, "--compare", stricter)

    assert [(line["only_in"], line["event"]["condition_level"]) for line in ran.json] == [
        ("tables", "RestartRequest"),
        ("compare", "SeparateNPU"),
    ]
