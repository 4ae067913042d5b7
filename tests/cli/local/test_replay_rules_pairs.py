"""Two faults on one chip: its level is the first by precedence, verdict and handling the strictest of both.

Each pair of levels is replayed in both modes: as both are new, as both have lasted past every tolerance,
and after either has recovered. What is right stands here in tables of its own.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Literal

import pytest

from tests.cli.conftest import Ran, Replay, advance, moved, signal

Mode = Literal["rescheduling", "graceful"]

PRECEDENCE = (
    "ManuallySeparateNPU",
    "SeparateNPU",
    "PreSeparateNPU",
    "RestartNPU",
    "FreeRestartNPU",
    "RestartBusiness",
    "RestartRequest",
    "SubHealthFault",
    "NotHandleFault",
)
VERDICTS = ("ISOLATE", "NO_NEW_JOBS", "ALLOW")
HANDLINGS = (
    "RESCHEDULE",
    "STOP_RESET_RESTART",
    "RESET_WHEN_IDLE",
    "RESTART_JOB",
    "RERUN_REQUEST",
    "JOB_STRATEGY",
    "NONE",
)

OUT = "ISOLATE RESCHEDULE"
NEW = {
    "NotHandleFault": ("ALLOW NONE", "ALLOW NONE"),
    "SubHealthFault": ("ALLOW JOB_STRATEGY", "ALLOW JOB_STRATEGY"),
    "RestartRequest": ("NO_NEW_JOBS RERUN_REQUEST", "NO_NEW_JOBS RERUN_REQUEST"),
    "RestartBusiness": (OUT, "NO_NEW_JOBS RESTART_JOB"),
    "FreeRestartNPU": (OUT, "NO_NEW_JOBS RESET_WHEN_IDLE"),
    "RestartNPU": (OUT, "ISOLATE STOP_RESET_RESTART"),
    "PreSeparateNPU": ("NO_NEW_JOBS NONE", "NO_NEW_JOBS NONE"),
    "SeparateNPU": (OUT, OUT),
    "ManuallySeparateNPU": (OUT, OUT),
}
"""By level what it means in mode rescheduling and in mode graceful."""
LASTING = {
    **NEW,
    "RestartRequest": (OUT, "ISOLATE STOP_RESET_RESTART"),
    "RestartBusiness": (OUT, "ISOLATE STOP_RESET_RESTART"),
}
"""The same after more than a minute."""

CODES = {level: f"A000000{number}" for number, level in enumerate(PRECEDENCE)}
ROW = """
[codes.{code}]
name = "{level}"
level = "{row_level}"
clear_on = ["recover"]
description = "A fault at {level}."
action = "None."
"""
PROMOTES = f"""
[[frequency]]
id = "at-once"
codes = ["{CODES["ManuallySeparateNPU"]}"]
times = 1
time_window = "60s"
level = "ManuallySeparateNPU"
release_time_window = "60s"
correlation = "0s"

[[frequency]]
id = "repeat"
codes = ["*"]
times = 3
time_window = "24h"
level = "ManuallySeparateNPU"
enabled = false
"""
ROWS = (
    ROW.format(code=code, level=level, row_level="NotHandleFault" if level.startswith("Manually") else level)
    for level, code in CODES.items()
)
TABLES = "\n".join(('kind = "chip"\nvendor = "ascend"', *ROWS, PROMOTES))

BEGUN = datetime(2026, 1, 2, tzinfo=UTC)
EACH = timedelta(minutes=10)
PAIRS = list(permutations(PRECEDENCE, 2))


@dataclass(frozen=True)
class Stands:
    """How the chip stood, or must have, at some times of one pair."""

    new: str
    lasting: str
    one_left: str
    none_left: str


def story(one: str, other: str, begun: datetime) -> list[str]:
    """``one`` comes, ``other`` a second later; ``other`` recovers after 100 s, ``one`` after 300 s."""
    reports = (
        (0, one, "occur"),
        (1, other, "occur"),
        (100, other, "recover"),
        (300, one, "recover"),
    )
    return [
        moved(
            signal("00:00:00", "npu0", CODES[level], assertion),
            (begun + timedelta(seconds=after_s)).isoformat(),
        )
        for after_s, level, assertion in reports
    ]


def course(ran: Ran) -> list[tuple[datetime, str]]:
    """When each event was, and how it left the chip."""
    return [
        (datetime.fromisoformat(event["at"]), f"{event['level']} {event['verdict']} {event['handling']}")
        for event in ran.json
    ]


def seen(events: list[tuple[datetime, str]], begun: datetime) -> Stands:
    """What the last event before said. A promotion is released a minute after its fault recovered."""
    moments = [begun + timedelta(seconds=after_s) for after_s in (2, 99, 200, 500)]
    return Stands(*([stood for at, stood in events if at <= moment][-1] for moment in moments))


def right(one: str, other: str, mode: Mode) -> Stands:
    column = 0 if mode == "rescheduling" else 1
    return Stands(
        new=both((one, NEW[one][column]), (other, NEW[other][column])),
        lasting=both((one, LASTING[one][column]), (other, LASTING[other][column])),
        one_left=f"{one} {LASTING[one][column]}",
        none_left="NotHandleFault ALLOW NONE",
    )


def both(*faults: tuple[str, str]) -> str:
    """Of levels with their verdict and handling: each of the three by itself."""
    level = min((level for level, _ in faults), key=PRECEDENCE.index)
    verdict = min((meant.split()[0] for _, meant in faults), key=VERDICTS.index)
    handling = min((meant.split()[1] for _, meant in faults), key=HANDLINGS.index)
    return f"{level} {verdict} {handling}"


@pytest.mark.parametrize("mode", ["rescheduling", "graceful"])
def test_of_every_two_levels_the_strictest_of_each_word_counts_and_what_is_left_when_one_recovers(
    replay: Replay, configuration: Path, mode: Mode
) -> None:
    configuration.write_text(f'{configuration.read_text()}\nmode = "{mode}"\n')
    begins = [BEGUN + index * EACH for index in range(len(PAIRS))]
    lines = [
        line for (one, other), begun in zip(PAIRS, begins, strict=True) for line in story(one, other, begun)
    ]
    lines.append(moved(advance("00:00:00"), (begins[-1] + EACH).isoformat()))

    events = course(replay(lines, TABLES))

    stood = {pair: seen(events, begun) for pair, begun in zip(PAIRS, begins, strict=True)}
    assert stood == {pair: right(*pair, mode) for pair in PAIRS}
