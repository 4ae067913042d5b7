"""What the shipped patterns make of some 1,700 lines stays what it was.

``kernel_matches.json`` holds the lines of the other fixtures, and lines that were made from the patterns and
mutated: some only just match, some only just do not. Behind each line: pattern, code, device, count and
groups, or null where no pattern takes it. The answers are those of the matcher before the one with RE2, which
tried each pattern with Python's ``re``. Where a pattern is meant to change, its lines change here.
"""

import json
from pathlib import Path
from typing import Any

from nodeagent.drivers.kmsg.match import Matcher
from nodeagent.wire import as_patterns
from tests.shipped import shipped_catalog

FIXTURE = Path(__file__).parents[2] / "fixtures/kernel_matches.json"


def test_each_line_gives_the_same_pattern_code_device_and_groups() -> None:
    expected: list[list[Any]] = json.loads(FIXTURE.read_text())
    matches = Matcher(as_patterns(shipped_catalog().patterns)).match([line for line, *_ in expected])
    found = [
        [line, None]
        if match is None
        else [line, match.pattern, match.code, match.device, match.count, dict(match.groups)]
        for (line, *_), match in zip(expected, matches, strict=True)
    ]
    assert [pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]] == []
