"""The live screen as text: it fits its size, and is readable without colour."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.ask.measured import Readings
from nodeagent.cli.shared.output import Styled
from nodeagent.cli.top.choices import Choices, Pane, Sort
from nodeagent.cli.top.screen import LastAnswer, Line, Size, WrittenLine, ordered, screen
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2

NOW_S = 1_000_000
SMALL, WIDE = Size(80, 24), Size(160, 48)


def device(name: str, verdict: str = "ALLOW", **more: Any) -> types_pb2.Device:
    handling = "HANDLING_NONE" if verdict in ("ALLOW", "UNKNOWN") else "HANDLING_RESCHEDULE"
    values: dict[str, Any] = {
        "observed": verdict != "UNKNOWN",
        "kind": "KIND_CHIP",
        "handling": handling,
        **more,
    }
    return types_pb2.Device(id=f"id-{name}", name=name, verdict=f"VERDICT_{verdict}", **values)


def condition(name: str, code: str, title: str, seconds_ago: int) -> types_pb2.Condition:
    return types_pb2.Condition(
        id=f"{name}/{code}",
        device_id=f"id-{name}",
        device=name,
        code=code,
        name=title,
        level="LEVEL_SEPARATE_NPU",
        opened_at=Timestamp(seconds=NOW_S - seconds_ago),
    )


def readings(celsius: float, use: float) -> Readings:
    gib = float(2**30)
    return {
        "temperature_celsius": celsius,
        "power_watts": 90 + celsius,
        "utilization_ratio.aicore": use,
        "memory_used_bytes": 16 * gib,
        "memory_total_bytes": 64 * gib,
    }


def node_of(chips: int, **more: Any) -> LastAnswer:
    bad: Mapping[int, str] = {3: "ISOLATE", 9: "UNKNOWN", 12: "NO_NEW_JOBS"}
    devices = [device(f"npu{number}", bad.get(number, "ALLOW")) for number in range(chips)]
    snapshot = pb.Snapshot(
        seq=62,
        at=Timestamp(seconds=NOW_S - 30),
        devices=[device("node", kind="KIND_NODE"), *devices, device("ub0", kind="KIND_UNIFIEDBUS")],
        conditions=[
            condition("npu3", "80E01801", "Multi-bit ECC errors when accessing the HBM", 300),
            condition("npu9", "driver_unresponsive", "Driver does not answer", 7200),
            condition("npu12", "80C98002", "AIC detects an external input error", 12),
        ],
        sources=[types_pb2.Source(name="bmc", observing=False, reason="no answer")],
    )
    values: dict[str, Any] = {
        "node": "gpu-17",
        "snapshot": snapshot,
        "at": snapshot.at,
        "readings": {
            each.name: readings(40 + place, place / 20) for place, each in enumerate(devices) if each.observed
        },
        **more,
    }
    return LastAnswer(**values)


def text(line: Line) -> str:
    return " ".join(map(_piece, line)).rstrip()


def _piece(piece: str | Styled | WrittenLine) -> str:
    if isinstance(piece, Styled):
        return (piece.text + piece.after).ljust(piece.width)
    return piece.text if isinstance(piece, WrittenLine) else piece


def shown(seen: LastAnswer, choices: Choices, size: Size = SMALL, pane: list[str] | None = None) -> list[str]:
    lines = [text(line) for line in screen(seen, choices, pane or [], size, Timestamp(seconds=NOW_S))]
    # The clock is in the zone of this machine.
    return [re.sub(r"(1970-01-\d\d )?\d\d:\d\d:\d\d [-+\w]+", "CLOCK", line) for line in lines]


def test_a_node_on_a_small_terminal() -> None:
    assert shown(node_of(13), Choices(selected="npu12")) == [
        "gpu-17: 10 of 13 NPUs are well, 1 isolated, 1 with no new jobs, 1…  CLOCK",
        "by verdict, the worst first, 62 events",
        "  DEVICE  VERDICT      TEMP  POWER  USE  MEM    AGE  FAULT",
        "  npu3    ISOLATE      43 C  133 W  15%  25%  5 min  80E01801 Multi-bit ECC err…",
        "> npu12   NO_NEW_JOBS  52 C  142 W  60%  25%   12 s  80C98002 AIC detects an ex…",
        "  npu9    UNKNOWN         -      -    -    -    2 h  driver_unresponsive Driver…",
        *(
            f"  {f'npu{at}':<6}  ALLOW        {40 + at} C  {130 + at} W {at * 5:>3}%  25%      -  -"
            for at in (0, 1, 2, 4, 5, 6, 7, 8, 10, 11)
        ),
        "",
        "source bmc does not observe: no answer",
        *[""] * 5,
        "up/down select  Enter why  e events  s sort  a all  ? help  q quit",
    ]


@pytest.mark.parametrize("size", [SMALL, WIDE, Size(60, 10), Size(200, 12)])
@pytest.mark.parametrize("pane", list(Pane))
def test_the_screen_has_exactly_its_lines_and_none_is_too_long(size: Size, pane: Pane) -> None:
    lines = screen(node_of(40), Choices(pane=pane), ["x"] * 100, size, Timestamp(seconds=NOW_S))
    assert len(lines) == size.lines
    assert max(len(text(line)) for line in lines) <= size.columns


def test_the_selected_device_is_always_on_the_screen() -> None:
    for name in ("npu0", "npu25", "npu39"):
        [marked] = [
            line
            for line in shown(node_of(40), Choices(selected=name, sort=Sort.NAME))
            if line.startswith(">")
        ]
        assert marked.split()[1] == name


@pytest.mark.parametrize(
    ("choices", "first"),
    [
        (Choices(), ["npu3", "npu12", "npu9", "npu0"]),
        (Choices(sort=Sort.NAME), ["npu0", "npu1", "npu2", "npu3"]),
        (Choices(sort=Sort.NAME, is_reversed=True), ["npu12", "npu11", "npu10", "npu9"]),
        (Choices(sort=Sort.TEMPERATURE), ["npu12", "npu11", "npu10", "npu8"]),
        (Choices(sort=Sort.USE, is_reversed=True), ["npu0", "npu1", "npu2", "npu3"]),
        (Choices(sort=Sort.POWER, every=True), ["npu12", "npu11", "npu10", "npu8"]),
    ],
)
def test_devices_are_in_the_order_that_was_chosen(choices: Choices, first: list[str]) -> None:
    assert ordered(node_of(13), choices)[:4] == first


def test_what_is_not_known_is_last_in_each_order_by_a_measure() -> None:
    for choices in (Choices(sort=Sort.POWER), Choices(sort=Sort.POWER, is_reversed=True)):
        assert ordered(node_of(13), choices)[-1] == "npu9"


def test_well_parts_that_are_no_chips_are_shown_on_request() -> None:
    assert "ub0" not in ordered(node_of(13), Choices())
    assert {"ub0", "node"} <= set(ordered(node_of(13), Choices(every=True)))


def test_a_daemon_that_does_not_answer_is_named_with_the_time_of_what_is_shown() -> None:
    silent = node_of(13, silent="the daemon did not answer within 3 s")
    lines = shown(silent, Choices())
    assert lines[1] == "NO ANSWER, this is of CLOCK (30 s ago): the daemon did not answer within…"
    assert lines[3].startswith("> npu3    ISOLATE")


def test_a_wide_terminal_has_what_happens_next_and_the_whole_fault() -> None:
    lines = shown(node_of(13), Choices(), WIDE)
    assert lines[2].split() == [
        "DEVICE",
        "VERDICT",
        "TEMP",
        "POWER",
        "USE",
        "MEM",
        "USERS",
        "AGE",
        "NEXT",
        "JOB",
        "FAULT",
    ]
    assert lines[3].endswith("80E01801 Multi-bit ECC errors when accessing the HBM")
