"""``counted_by``: where it fits, what is said where it does not, and that it survives being written out."""

import pytest

from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.model import CountedBy
from nodeagent.tables.export import to_toml
from nodeagent.tables.rule_kinds import sort_of
from tests.tables.conftest import Load, Refusals

RULE = """kind = "{kind}"
[codes.A1]
name = "a fault"
level = "{level}"
clear_on = ["reboot"]
[[frequency]]
id = "often"
codes = ["{codes}"]
times = 3
time_window = "1h"
level = "SubHealthFault"
release_time_window = "1h"
counted_by = "{counted_by}"
"""
"""Thirteen lines."""

PATTERN = """[[pattern]]
id = "P"
code = "{code}"
device = "pci"
regex = '''^NVRM: a fault in a chip at (?P<{group}>\\d{{1,3}}) (?P<pci>\\d{{1,3}})'''
"""


def table(counted_by: str, kind: str = "chip", level: str = "RestartNPU", codes: str = "A1") -> str:
    return RULE.format(counted_by=counted_by, kind=kind, level=level, codes=codes)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (
            table("user"),
            't.toml:13: frequency[0].counted_by: "user": must be one of device, job, place',
        ),
        (
            table("job", kind="host", level="SeparateFault"),
            (
                't.toml:13: frequency[0].counted_by: "job": only chips have jobs;'
                ' "device" is right for kind host'
            ),
        ),
        (
            table("place", codes="*"),
            (
                't.toml:13: frequency[0].counted_by: "place": name the codes whose patterns have a group'
                ' "place", in place of "*"'
            ),
        ),
        (
            table("place") + PATTERN.format(code="A1", group="text"),
            (
                't.toml:13: frequency[0].counted_by: "place": no pattern of A1 has a group "place",'
                " so that nothing would be counted"
            ),
        ),
    ],
    ids=["no such word", "no chip", "every code", "no place"],
)
def test_what_cannot_be_counted_so_is_refused(refusals: Refusals, text: str, refusal: str) -> None:
    assert refusals(text) == [refusal]


@pytest.mark.parametrize(
    ("counted_by", "said"),
    [
        ("device", "3 times in 1h: SubHealthFault, released once it stayed away for 1h"),
        ("job", "3 times by one job in 1h: SubHealthFault, released once it stayed away for 1h"),
        (
            "place",
            (
                "3 jobs that failed at one and the same place of the device in 1h: SubHealthFault,"
                " released once it stayed away for 1h"
            ),
        ),
    ],
)
def test_it_is_told_in_words_and_written_out(load: Load, counted_by: str, said: str) -> None:
    text = table(counted_by) + PATTERN.format(code="A1", group="place")
    (rule,) = load({"t.toml": text}).catalog.frequency
    assert isinstance(rule, FrequencyRule)
    assert rule.counted_by is CountedBy(counted_by)
    assert sort_of(rule).text(rule) == said
    written = to_toml([], [rule])
    assert (f'counted_by = "{counted_by}"' in written) is (counted_by != "device")
