"""The status of a node with 16 NPUs, some of them out of service: its first screen is the whole truth."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.cli.local.emulator import configuration_of
from nodeagent.emulator.node import EmulatedNode
from tests.cli.conftest import Nodeagent
from tests.cli.terminal import COLOUR, on_terminal, typing
from tests.harness.node import Node

BROKEN = ("npu3", "npu4", "npu10", "npu11")
HBM = 0x80E01801
HUNG = "npu9"
LINES = 24
"""Of a terminal."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The configuration of a daemon on them: one isolated by a person, four faulty, one that hangs."""
    folder = tmp_path_factory.mktemp("status")
    chips = EmulatedNode.create(folder / "chips", "16xA3")
    polled = f'{configuration_of(chips)}\npoll_interval = "100ms"\ncall_deadline = "1s"\n'
    node = Node.within(folder, f'{polled}[reset]\nmode = "off"\n')
    with chips, node.daemon() as stream:
        for _ in range(24):
            stream.until(" ALLOW ")
        for name in BROKEN:
            chips.raise_code(name, HBM, severity=2)
        chips.hang(HUNG)
        stream.until("driver_unresponsive")
        yield node.configuration


def test_it_begins_with_how_many_chips_take_work(node: Path, nodeagent: Nodeagent) -> None:
    nodeagent("isolate", "npu2", "--reason", "RMA", "--config", node)
    lines = nodeagent("status", "--config", node).out.splitlines()
    every = nodeagent("status", "--config", node, "--all").out
    form = nodeagent("status", "--config", node, "-o", "json").json[0]

    assert lines[0].endswith(": 10 of 16 NPUs are well, 5 isolated, 1 unknown")
    head = next(place for place, line in enumerate(lines) if line.startswith("DEVICE "))
    rows = [re.sub(r"  \d+ (s|min)  +", "  ", line) for line in lines[head + 1 : head + 7]]
    assert lines[head].split() == ["DEVICE", "VERDICT", "AGE", "NEXT", "FAULT"]
    assert [re.split(" {2,}", row) for row in rows] == [
        ["npu2", "ISOLATE", "isolated by alice", "RMA"],
        *(
            [name, "ISOLATE", "jobs move away", "80E01801 Multi-bit ECC errors when accessing the HBM"]
            for name in BROKEN
        ),
        ["npu9", "UNKNOWN", "is not observed", "driver_unresponsive Driver does not answer"],
    ]
    assert lines[head + 7] == "17 other devices are well; --all shows each"
    assert re.findall(r"^(npu\d+|ub\d) +ALLOW", every, re.MULTILINE) == [
        *(f"npu{number}" for number in (0, 1, 5, 6, 7, 8, 12, 13, 14, 15)),
        *(f"ub{number}" for number in range(7)),
    ]
    assert [each["name"] for each in form["devices"]][:12] == [
        "node",
        *(f"npu{number}" for number in range(11)),
    ]


@pytest.mark.parametrize("command", ["status", "scan", "devices", "consumers"])
def test_who_may_use_the_control_socket_asks_there_where_readers_take_no_place(
    node: Path, nodeagent: Nodeagent, tmp_path: Path, command: str
) -> None:
    without_public = tmp_path / "without.toml"
    without_public.write_text(node.read_text().replace("/n.sock", "/nobody.sock"))
    asked = nodeagent(command, "--config", node, "-o", "json")
    assert asked.status in (0, 1)
    again = nodeagent(command, "--config", without_public, "-o", "json")
    assert (again.status, again.err) == (asked.status, "")
    assert [each.get("by") for each in again.json] == [each.get("by") for each in asked.json]


def test_one_screen_of_a_terminal_holds_all_that_is_wrong_in_a_line_each(
    node: Path, nodeagent: Nodeagent
) -> None:
    nodeagent("isolate", "npu2", "--reason", "RMA", "--config", node)
    screen = COLOUR.sub("", on_terminal("status", "--config", node)).splitlines()
    wide = COLOUR.sub("", on_terminal("status", "--wide", "--config", node))

    assert len(screen) < LINES
    assert [line for line in screen if len(line) > 80] == []
    shown = [line.split()[0] for line in screen if re.match(r"npu\d+ ", line)]
    assert shown == ["npu2", *BROKEN, HUNG]
    assert len([line for line in screen if "80E01801 Multi-bit ECC" in line]) == len(BROKEN)
    assert "Multi-bit ECC errors when accessing the HBM" in re.sub(r"\n +", " ", wide)


def test_its_devices_have_what_the_driver_measures_and_nothing_of_one_that_hangs(
    node: Path, nodeagent: Nodeagent
) -> None:
    devices = nodeagent("devices", "npu1", HUNG, "-o", "json", "--config", node).json
    unknown = nodeagent("devices", "NPU1", "--config", node)
    screen = COLOUR.sub("", on_terminal("devices", "--config", node)).splitlines()

    assert devices[0]["readings"]["temperature_celsius"] == 41.0
    assert devices[0]["readings"]["memory_total_bytes"] == 64 * 2**30
    assert devices[1]["readings"] is None
    assert (unknown.status, "; the nearest is npu1;" in unknown.err) == (1, True)
    with typing("why", "NPU1", "--config", node) as person:
        assert person.ended() == 1
        refusal = person.written.splitlines()
    assert [line for line in refusal if len(line) > 80 or not line.endswith((",", "npu1;", "more"))] == []
    assert len(screen) < LINES
    assert [line.split() for line in screen if line.startswith(HUNG)] == [[HUNG, "UNKNOWN", *["-"] * 7]]


def test_a_damaged_store_is_below_the_headline_with_what_was_lost_and_what_to_do(
    tmp_path: Path, nodeagent: Nodeagent
) -> None:
    node = Node.within(tmp_path)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "store.db").write_bytes(b"no store" * 1024)
    with node.daemon():
        lines = nodeagent("status", "--config", node.configuration).out.splitlines()
        form = nodeagent("status", "--config", node.configuration, "-o", "json").json[0]
        released = nodeagent("release", "node", "--reason", "seen", "--config", node.configuration)
        after = nodeagent("status", "--config", node.configuration).out

    evidence = {each["code"]: each["evidence"] for each in form["conditions"]}["store_damaged.incomplete"]
    assert lines[1:6] == [
        f"store_damaged.incomplete: {evidence['reason']}",
        "   lost: everything",
        f"   kept as: {evidence['kept_as']}",
        "   resets: none begins until a person has acknowledged this",
        '   do: nodeagent release node --reason "..."',
    ]
    assert (released.status, "store_damaged" in after) == (0, False)
