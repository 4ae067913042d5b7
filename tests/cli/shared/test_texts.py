"""Times in the words of RFC 3339.

What ``why`` and ``devices`` say of a device whose driver does not answer all that it is asked.

The first line of the status: how many of which chips are well, and what is wrong with the others.
"""

from datetime import timedelta, timezone

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.shared import texts
from nodeagent.cli.shared.texts import for_people, headline, local_time, rfc3339
from nodeagent.messages.pb import types_pb2
from nodeagent.messages.pb import types_pb2 as pb

NOON = 1_767_355_445


@pytest.mark.parametrize(
    ("seconds", "nanos", "expected"),
    [
        (NOON, 678_901_234, "2026-01-02T12:04:05.678901Z"),
        (1 << 62, 0, "9999-12-31T23:59:59.000000Z"),
        (-(1 << 62), -5, "0001-01-01T00:00:00.000000Z"),
        (0, 2_000_000_000, "1970-01-01T00:00:00.999999Z"),
    ],
)
def test_a_time_has_one_form_and_one_that_no_calendar_has_is_the_nearest(
    seconds: int, nanos: int, expected: str
) -> None:
    assert rfc3339(Timestamp(seconds=seconds, nanos=nanos)) == expected


def test_a_time_in_a_pipe_is_in_utc_with_milliseconds() -> None:
    assert for_people(Timestamp(seconds=NOON), Timestamp(seconds=NOON + 60)) == "2026-01-02T12:04:05.000Z"


@pytest.mark.parametrize(
    ("seconds_later", "shown"),
    [
        (185, "21:04:05 JST (3 min ago)"),
        (-600, "21:04:05 JST (in 10 min)"),
        (3 * 3600, "2026-01-02 21:04:05 JST (3 h ago)"),
    ],
)
def test_a_time_on_a_terminal_is_local_and_has_its_age_and_the_date_of_another_day(
    seconds_later: int, shown: str
) -> None:
    zone = timezone(timedelta(hours=9), "JST")
    assert local_time(Timestamp(seconds=NOON), Timestamp(seconds=NOON + seconds_later), zone) == shown


def test_a_zone_without_a_name_is_shown_by_its_offset() -> None:
    now = Timestamp(seconds=NOON)
    assert local_time(now, now, timezone(timedelta(hours=1), ""), with_age=False) == "13:04:05 +0100"


ROWS = {"unjudged": "XID_63,XID_64", "unanswered": "nvmlDeviceGetRemappedRows_v2 NO_PERMISSION"}
HEAT = {"unanswered": "MEMORY_TEMP NOT_SUPPORTED"}


@pytest.mark.parametrize(
    ("attributes", "lines", "line"),
    [
        (
            ROWS,
            [
                "not judged by XID_63, XID_64: the driver does not answer",
                "not answered: nvmlDeviceGetRemappedRows_v2 NO_PERMISSION",
            ],
            "gpu4 is not judged by XID_63, XID_64: nodeagent why gpu4",
        ),
        (
            HEAT,
            ["not answered: MEMORY_TEMP NOT_SUPPORTED"],
            "gpu4 does not answer all questions: nodeagent why gpu4",
        ),
        ({}, [], ""),
    ],
)
def test_a_device_that_does_not_answer_all_is_reported(
    attributes: dict[str, str], lines: list[str], line: str
) -> None:
    device = types_pb2.Device(name="gpu4", attributes=attributes)
    assert list(texts.unanswered_lines(device)) == lines
    assert texts.unanswered_line(device) == line


ALLOW, UNKNOWN = pb.VERDICT_ALLOW, pb.VERDICT_UNKNOWN
NO_NEW_JOBS, ISOLATE = pb.VERDICT_NO_NEW_JOBS, pb.VERDICT_ISOLATE
CHIP, SWITCH, NODE = pb.KIND_CHIP, pb.KIND_UNIFIEDBUS, pb.KIND_NODE


def node(verdict: pb.Verdict = ALLOW, handling: pb.Handling = pb.HANDLING_NONE) -> pb.Device:
    return pb.Device(name="node", kind=NODE, verdict=verdict, handling=handling)


def chips(kind: str, *verdicts: pb.Verdict) -> list[pb.Device]:
    return [
        pb.Device(name=f"{kind}{number}", kind=CHIP, verdict=verdict)
        for number, verdict in enumerate(verdicts)
    ]


WELL = node()
OUT = node(ISOLATE, pb.HANDLING_RESCHEDULE)
OUT_OF_WORK = "ISOLATE, RESCHEDULE: the node takes no work; "


@pytest.mark.parametrize(
    ("itself", "others", "expected"),
    [
        (WELL, chips("npu", *[ALLOW] * 16), "16 of 16 NPUs are well"),
        (
            WELL,
            chips("npu", *[ISOLATE] * 5, UNKNOWN, *[ALLOW] * 10),
            "10 of 16 NPUs are well, 5 isolated, 1 unknown",
        ),
        (WELL, chips("gpu", ALLOW, NO_NEW_JOBS), "1 of 2 GPUs is well, 1 with no new jobs"),
        (WELL, chips("gpu", ALLOW), "1 of 1 GPU is well"),
        (WELL, chips("gpu", UNKNOWN, UNKNOWN), "0 of 2 GPUs are well, 2 unknown"),
        (
            WELL,
            [*chips("npu", ISOLATE, ALLOW), *chips("gpu", ALLOW, ALLOW)],
            "1 of 2 NPUs is well, 1 isolated; 2 of 2 GPUs are well",
        ),
        (
            WELL,
            [pb.Device(name="0000:3b:00.0", kind=CHIP, verdict=ISOLATE)],
            "no chip is known; 1 unlisted chip isolated",
        ),
        (
            OUT,
            [
                pb.Device(name="0000:3b:00.0", kind=CHIP, verdict=ISOLATE),
                *chips("npu", ISOLATE, ALLOW),
            ],
            OUT_OF_WORK + "1 of 2 NPUs is well, 1 isolated; 1 unlisted chip isolated",
        ),
        (
            WELL,
            [
                *chips("npu", ALLOW, ALLOW),
                pb.Device(name="ub0", kind=SWITCH, verdict=ALLOW),
                pb.Device(name="ub1", kind=SWITCH, verdict=NO_NEW_JOBS),
            ],
            "2 of 2 NPUs are well; 1 other device with no new jobs",
        ),
        (
            OUT,
            chips("npu", ISOLATE, ALLOW, ALLOW),
            "ISOLATE, RESCHEDULE: the node takes no work; 2 of 3 NPUs are well, 1 isolated",
        ),
        (node(NO_NEW_JOBS), [], "NO_NEW_JOBS: the node takes no new jobs; no chip is known"),
        (
            node(UNKNOWN),
            chips("npu", UNKNOWN),
            "UNKNOWN: it is not known whether the node takes work; 0 of 1 NPU is well, 1 unknown",
        ),
        (
            pb.Device(name="node"),
            [],
            "UNKNOWN: it is not known whether the node takes work; no chip is known",
        ),
        (WELL, [], "no chip is known"),
    ],
)
def test_the_nodes_truth_in_one_line(itself: pb.Device, others: list[pb.Device], expected: str) -> None:
    assert headline(itself, [itself, *others]) == expected
