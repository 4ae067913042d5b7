"""What ``why`` shows first: the verdict, its cause and age, what to do, what happens next, and the part."""

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.ask.why import write_why
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2

NOW_S = 1_000_000


def at(seconds_ago: int) -> Timestamp:
    return Timestamp(seconds=NOW_S - seconds_ago)


def device(name: str, **more: Any) -> types_pb2.Device:
    return types_pb2.Device(
        id=f"id-{name}", name=name, verdict="VERDICT_ISOLATE", handling="HANDLING_NONE", observed=True, **more
    )


def written(capsys: pytest.CaptureFixture[str], why: pb.WhyDeviceResponse, **lists: Any) -> list[str]:
    write_why(why, pb.Snapshot(at=at(0), devices=[why.device], **lists))
    return capsys.readouterr().out.splitlines()


def test_a_chip_that_is_reset_with_another_names_that_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reset = types_pb2.Reset(
        id="f078/reset#1",
        devices=["npu4", "npu5"],
        codes=["80E18005"],
        stage="RESET_STAGE_ASKING",
        mode="RESET_MODE_ASK",
        attempt=1,
        due_at=at(-600),
    )
    reason = "nodeagent: reset pending: npu4, npu5"
    hold = types_pb2.Hold(kind="HOLD_KIND_RESET_PENDING", reason="reset pending: npu4, npu5", since=at(120))
    contribution = pb.Contribution(reason=types_pb2.Reason(kind="REASON_KIND_HOLD", text=reason), hold=hold)
    part = {"product": "Atlas 800T A3", "serial": "2102", "slot": "2", "board": "0xb0"}
    why = pb.WhyDeviceResponse(device=device("npu5", attributes=part), contributions=[contribution])
    assert written(capsys, why, resets=[reset], holds=[hold]) == [
        "npu5: ISOLATE, handling NONE",
        "  cause: nodeagent: reset pending: npu4, npu5",
        "  since: 1970-01-12T13:44:40.000Z",
        (
            "  next: reset of npu4 (and with it npu5) for 80E18005 is refused unless approved before"
            " 1970-01-12T13:56:40.000Z: nodeagent approve npu4"
        ),
        "  part: product Atlas 800T A3, serial 2102, slot 2",
        "",
        "hold: nodeagent: reset pending: npu4, npu5",
    ]


def test_a_time_that_is_both_the_first_and_the_last_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    def of(last_at: Timestamp) -> str:
        condition = types_pb2.Condition(source="kmsg", count=1, opened_at=at(60), last_at=last_at)
        reason = types_pb2.Reason(
            kind="REASON_KIND_CONDITION", code="XID_79", text="lost", level="LEVEL_SEPARATE_NPU"
        )
        contribution = pb.Contribution(reason=reason, condition=condition)
        lines = written(capsys, pb.WhyDeviceResponse(device=device("gpu0"), contributions=[contribution]))
        return next(line for line in lines if line.startswith("  from "))

    assert of(at(60)) == "  from kmsg, 1 signal, 1970-01-12T13:45:40.000Z"
    assert of(at(0)).endswith(", 1970-01-12T13:45:40.000Z to 1970-01-12T13:46:40.000Z")


def test_a_fault_of_a_port_that_keeps_work_from_the_node_names_the_port(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reason = types_pb2.Reason(
        kind="REASON_KIND_CONDITION",
        code="PORT_DOWN",
        text="Network port down",
        level="LEVEL_PRE_SEPARATE_FAULT",
    )
    condition = types_pb2.Condition(device="eth7", source="link", count=1, opened_at=at(60), last_at=at(60))
    contribution = pb.Contribution(reason=reason, condition=condition)
    lines = written(capsys, pb.WhyDeviceResponse(device=device("node"), contributions=[contribution]))
    assert lines[1] == "  cause: Network port down on eth7 (PORT_DOWN, PreSeparateFault)"
    assert "condition: PORT_DOWN Network port down on eth7, PreSeparateFault" in lines
