"""The reason of a drain: what of it a person sees, and whose it is."""

import pytest

from nodeagent.schedulers.slurm.verdicts import is_own, reason

SHOWN = 20
"""Characters of a reason that ``sinfo -R`` shows."""


def test_the_code_and_the_device_stand_where_sinfo_shows_them() -> None:
    assert reason("80E18005", "npu3", 0, 4711) == "80E18005 npu3 (nodeagent #4711)"
    assert reason("80E18005", "npu3", 0, 4711)[:SHOWN] == "80E18005 npu3 (nodea"
    assert reason("XID_79", "gpu0", 7, 12) == "XID_79 gpu0 +7 (nodeagent #12)"


@pytest.mark.parametrize(
    "code", ["80E18005", "", "a code\nof two lines", "'; reboot #", "\N{SNOWMAN}" * 300, "(nodeagent #1)"]
)
def test_whatever_the_code_is_the_reason_is_one_plain_line_and_our_own(code: str) -> None:
    made = reason(code, "npu3", 0, 7)
    assert is_own(made)
    assert made.isascii()
    assert made.isprintable()
    assert not set(made) & set("'\"\\;")
    assert len(made) <= 160


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cable is changed",
        "Not responding",
        "see (nodeagent #7) above",
        "new board, see 80E18005 npu3 (nodeagent #7)",
        "80E18005 npu3",
        "(nodeagent #x)",
    ],
)
def test_any_other_reason_is_anothers(text: str) -> None:
    assert not is_own(text)
