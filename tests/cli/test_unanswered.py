"""What ``why`` and ``devices`` say of a device whose driver does not answer all that it is asked."""

import pytest

from nodeagent.cli.shared import texts
from nodeagent.messages.pb import types_pb2

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
def test_a_device_that_does_not_answer_all_says_so(
    attributes: dict[str, str], lines: list[str], line: str
) -> None:
    device = types_pb2.Device(name="gpu4", attributes=attributes)
    assert list(texts.unanswered_lines(device)) == lines
    assert texts.unanswered_line(device) == line
