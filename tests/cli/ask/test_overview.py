"""From a snapshot to the lines of a screen: one for each device that is not well."""

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.ask.overview import (
    DeviceRow,
    job_counts,
    next_step,
    overview,
    reset_lines,
    rest_line,
)
from nodeagent.cli.shared.texts import age, named
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2

NOW_S = 1_000_000


def at(seconds_ago: int) -> Timestamp:
    return Timestamp(seconds=NOW_S - seconds_ago)


def device(
    name: str, verdict: str = "ISOLATE", handling: str = "RESCHEDULE", **more: Any
) -> types_pb2.Device:
    values: dict[str, Any] = {"observed": True, "kind": "KIND_CHIP", **more}
    return types_pb2.Device(
        id=f"id-{name}", name=name, verdict=f"VERDICT_{verdict}", handling=f"HANDLING_{handling}", **values
    )


def well(name: str) -> types_pb2.Device:
    return device(name, "ALLOW", "NONE")


def condition(name: str, code: str, level: str, seconds_ago: int = 90) -> types_pb2.Condition:
    return types_pb2.Condition(
        id=f"{name}/{code}",
        device_id=f"id-{name}",
        device=name,
        code=code,
        name=f"fault {code}",
        level=f"LEVEL_{level}",
        opened_at=at(seconds_ago),
    )


def hold(name: str, kind: str, owner: str = "nodeagent") -> types_pb2.Hold:
    return types_pb2.Hold(
        id=f"{name}/hold",
        device_id=f"id-{name}",
        device=name,
        kind=f"HOLD_KIND_{kind}",
        owner=owner,
        reason="RMA",
        since=at(7200),
    )


def reset(*devices: str, stage: str = "WAITING", mode: str = "ON", **more: Any) -> types_pb2.Reset:
    return types_pb2.Reset(
        devices=devices,
        codes=["C1"],
        stage=f"RESET_STAGE_{stage}",
        mode=f"RESET_MODE_{mode}",
        attempt=1,
        **more,
    )


def snapshot(**lists: Any) -> pb.Snapshot:
    return pb.Snapshot(at=at(0), **lists)


def test_a_device_has_one_row_with_its_worst_fault_and_how_many_more() -> None:
    current = snapshot(
        devices=[device("npu3"), well("npu4")],
        conditions=[condition("npu3", "C1", "SUB_HEALTH_FAULT"), condition("npu3", "C2", "SEPARATE_NPU")],
    )
    shown = overview(current, every=False)
    assert shown.rows == (
        DeviceRow(
            device="npu3",
            verdict="ISOLATE",
            code="C2",
            age="1 min",
            next_step="jobs move away",
            fault="fault C2 (and 1 more)",
        ),
    )
    assert rest_line(shown) == "1 other device is well; --all shows each"


def test_all_shows_each_device_and_each_condition() -> None:
    current = snapshot(
        devices=[device("npu3"), well("npu4")],
        conditions=[
            condition("npu3", "C1", "SUB_HEALTH_FAULT"),
            condition("npu3", "C2", "SEPARATE_NPU"),
            condition("npu4", "C3", "NOT_HANDLE_FAULT"),
        ],
    )
    shown = overview(current, every=True)
    assert [(row.device, row.code) for row in shown.rows] == [("npu3", "C2"), ("npu3", "C1"), ("npu4", "C3")]
    assert rest_line(shown) == ""
    assert rest_line(overview(current, every=False)) == (
        "1 other device is well; 1 open condition that affects no work; --all shows each"
    )


def test_chips_that_no_driver_lists_come_last_with_the_reason_that_is_known() -> None:
    current = snapshot(
        devices=[
            device("0000:3b:00.0", reasons=[types_pb2.Reason(text="no driver has identified it")]),
            device("npu3", "UNKNOWN", "NONE"),
        ]
    )
    rows = overview(current, every=False).rows
    assert [(row.device, row.fault) for row in rows] == [
        ("npu3", ""),
        ("0000:3b:00.0", "no driver has identified it"),
    ]


def test_a_node_that_a_port_keeps_work_from_has_the_fault_of_the_port_and_its_age() -> None:
    reason = types_pb2.Reason(id="eth7/C1", code="C1", text="fault C1", level="LEVEL_PRE_SEPARATE_FAULT")
    node = device("node", "NO_NEW_JOBS", "NONE", kind="KIND_NODE", reasons=[reason])
    port = device("eth7", "NO_NEW_JOBS", "NONE", kind="KIND_LINK")
    current = snapshot(devices=[node, port], conditions=[condition("eth7", "C1", "PRE_SEPARATE_FAULT")])
    first = overview(current, every=False).rows[0]
    assert (first.device, first.code, first.age, first.fault) == ("node", "C1", "1 min", "fault C1 on eth7")


@pytest.mark.parametrize(("stage", "observed"), [("WAITING", True), ("RUNNING", False)])
def test_devices_that_only_wait_for_the_reset_of_another_share_a_line(stage: str, observed: bool) -> None:
    chips = ["npu3", "npu0", "npu1", "npu2"]
    current = snapshot(
        devices=[device(name, handling="NONE", observed=observed) for name in chips],
        conditions=[condition("npu3", "C1", "RESTART_NPU")],
        holds=[hold(name, "RESET_PENDING") for name in chips],
        resets=[reset(*chips, stage=stage)],
    )
    shown = overview(current, every=False)
    assert [row.device for row in shown.rows] == ["npu3"]
    assert {asker: named(devices) for asker, devices in shown.held.items()} == {"npu3": "npu0-2"}


def test_a_well_chip_of_a_reset_that_is_only_recorded_has_nothing_before_it() -> None:
    dry_run = reset("npu4", "npu5", mode="DRY_RUN")
    assert next_step(well("npu5"), snapshot(devices=[well("npu5")], resets=[dry_run])) == ""


def test_what_happens_next_is_what_the_reset_or_else_the_hold_or_the_handling_brings() -> None:
    def of(chip: types_pb2.Device, **lists: Any) -> str:
        return next_step(chip, snapshot(devices=[chip], **lists))

    chip = device("npu3")
    announced = reset("npu3", stage="ANNOUNCED", due_at=Timestamp(seconds=NOW_S + 25))
    assert of(chip, resets=[announced], holds=[hold("npu3", "RESET_PENDING")]) == "reset in 25 s"
    assert of(chip, resets=[reset("npu3")]) == "reset waits"
    assert of(chip, resets=[reset("npu3", stage="ANNOUNCED", mode="ASK")]) == "reset: approve it"
    assert of(chip, resets=[reset("npu3", mode="DRY_RUN")]) == "no reset: dry-run"
    ended = reset("npu3", "npu2", stage="ENDED", result="refused: it has dropped")
    assert of(chip, resets=[ended], conditions=[condition("npu3", "C1", "RESTART_NPU")]) == "reset refused"
    assert of(chip, resets=[ended], conditions=[condition("npu3", "C2", "RESTART_NPU")]) == "jobs move away"
    assert of(chip, resets=[ended]) == "jobs move away"
    assert of(chip, holds=[hold("npu3", "ISOLATION", "alice")]) == "isolated by alice"
    assert of(chip, promotions=[types_pb2.Promotion(device_id="id-npu3")]) == "release or replace"
    assert of(device("npu3", handling="RESTART_JOB")) == "the job runs again"
    away = device("npu3", "UNKNOWN", "NONE", observed=False)
    assert of(away) == "is not observed"
    assert of(away, resets=[reset("npu3", stage="RUNNING")]) == "is reset now"


def test_a_reset_is_one_line_with_the_first_thing_that_it_waits_for() -> None:
    due_at = Timestamp(seconds=NOW_S + 25)
    waits = reset("npu3", "npu0", "npu1", due_at=due_at, blocked_by=["npu0 is claimed", "npu1 is claimed"])
    ended = reset("npu3", stage="ENDED", result="failed: no answer", ended_at=at(180))
    ordered = reset("npu3", stage="ANNOUNCED", who="uid:0", reason="hung", due_at=due_at)
    lines = [line for _, line in reset_lines(snapshot(resets=[waits, ended, ordered]))]
    assert lines == [
        (
            "reset of npu3 (and with it npu0, npu1) for C1 waits, until 1970-01-12T13:47:05.000Z at the"
            " latest: npu0 is claimed (and 1 more)"
        ),
        "reset of npu3 for C1: failed: no answer, 3 min ago",
        "reset of npu3 ordered by uid:0 (hung) begins at 1970-01-12T13:47:05.000Z",
    ]


def test_a_job_that_simply_runs_is_counted_and_one_that_is_moved_is_shown() -> None:
    runs = types_pb2.Job(name="slurm:1.0", stage="JOB_STAGE_RUNNING", recommended="RECOMMENDATION_NONE")
    asked = types_pb2.Job(name="slurm:2.0", stage="JOB_STAGE_ASKED", recommended="RECOMMENDATION_HOLD")
    claimed = types_pb2.Job(name="slurm:3")
    moved, others = job_counts(snapshot(jobs=[runs, asked, claimed]), every=False)
    assert ([job.name for job in moved], others) == (["slurm:2.0"], 1)


def test_ages_and_names_are_short() -> None:
    assert [age(at(seconds), at(0)) for seconds in (-5, 0, 59, 60, 7199, 90_000)] == [
        *("0 s", "0 s", "59 s", "1 min", "1 h", "1 d"),
    ]
    assert named(["npu10", "npu9", "npu8", "npu1", "ub0"]) == "npu1, npu8-10, ub0"
    assert named(["0000:3b:00.0", "npu1", "npu2"]) == "0000:3b:00.0, npu1, npu2"
