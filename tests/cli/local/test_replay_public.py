"""Faults that other systems report, from a file: whose each is, as the daemon takes them."""

import pytest

from tests.cli.conftest import Replay, advance, events_of, moved, signal

BROKEN = "020001001"


def reported(time: str, sender: str, assertion: str = "occur", **more: object) -> str:
    given = {"source": "public", "sender": sender, "fault_id": "fault-01", **more}
    return signal(time, "npu3", BROKEN, assertion, **given)


def test_a_recovery_ends_only_its_senders_fault(replay: Replay) -> None:
    ran = replay(
        [
            reported("00:00:00", "CCAE"),
            reported("00:01:00", "pingmesh"),
            reported("00:02:00", "CCAE"),
            reported("00:03:00", "CCAE", "recover"),
            reported("00:04:00", "pingmesh", "recover"),
        ]
    )
    assert events_of(ran) == [
        "00:00:00.000000Z raised npu3 020001001 SeparateNPU ISOLATE RESCHEDULE",
        "00:01:00.000000Z raised npu3 020001001 SeparateNPU ISOLATE RESCHEDULE",
        "00:03:00.000000Z cleared npu3 020001001 SeparateNPU ISOLATE RESCHEDULE",
        "00:04:00.000000Z cleared npu3 020001001 SeparateNPU ALLOW NONE",
    ]
    assert [event["evidence"] for event in ran.json[:2]] == [
        {"sender": "CCAE", "fault_id": "fault-01"},
        {"sender": "pingmesh", "fault_id": "fault-01"},
    ]


def test_a_sender_that_is_silent_loses_its_fault(replay: Replay) -> None:
    ran = replay([reported("00:00:00", "CCAE"), moved(advance("00:00:00"), "2026-01-04T00:00:00Z")])
    (_, expired) = ran.json
    assert (expired["at"], expired["kind"]) == ("2026-01-03T02:24:00.000000Z", "cleared")
    assert expired["why"] == "expired: CCAE has not repeated it for 86400 s"


def test_an_occurrence_that_comes_after_its_recovery_opens_nothing(replay: Replay) -> None:
    began = "2026-01-01T23:00:00Z"
    lines = [
        reported("00:00:00", "CCAE", "recover", began_at=began),
        reported("00:00:01", "CCAE", began_at=began),
    ]
    assert replay(lines).json == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            signal("00:00:00", "npu3", BROKEN, source="public", sender="CCAE"),
            "fault_id: missing; it goes with",
        ),
        (reported("00:00:00", "CCAE", source="ascend"), 'sender: only a line with the source "public" may'),
        (
            reported("00:00:00", "CCAE", "recover", began_at="2026-01-02T00:05:01Z"),
            "began_at: more than 5 minutes later than at, so that a daemon would not take it",
        ),
        (reported("00:00:00", "CCAE", began_at="now"), 'began_at: "now": must be an RFC 3339 time'),
    ],
)
def test_half_a_report_is_refused(replay: Replay, line: str, said: str) -> None:
    ran = replay([line])
    assert ran.status == 1
    assert said in ran.err
