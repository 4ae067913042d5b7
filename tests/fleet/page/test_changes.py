"""The stream of the page: all nodes first, then what changed, in one event however much it is."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nodeagent.client import Verdict
from nodeagent.fleet import state
from nodeagent.fleet.page import changes
from nodeagent.fleet.page.changes import FleetChanges
from nodeagent.fleet.page.rows import MAX_CODES_SHOWN, MAX_PARTS_SHOWN, encoded, node_details, node_row
from nodeagent.fleet.state import Contact, NodeStates, with_contact, with_devices
from tests.fleet.given import AT, LATER, answering, device, event, position
from tests.waiting import WAIT_LIMIT_S

NAMES = ("gpu-1", "gpu-2", "gpu-3")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "EVERY_S", 0.001)


@pytest.fixture
def node_states() -> NodeStates:
    """Three nodes that are well."""
    states = NodeStates()
    for name in NAMES:
        states.put(with_devices(answering(name), [device("gpu0")], position(1)))
    return states


def isolate(states: NodeStates, name: str, seq: int = 2) -> None:
    states.put(state.with_event(states.states[name], event(seq, codes=("XID_79",))))


@asynccontextmanager
async def following(
    nodes: FleetChanges, last_event_id: str = ""
) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    """One reader, while changes are looked for."""
    running = asyncio.create_task(nodes.run())
    try:
        async with aclosing(nodes.follow(last_event_id)) as events:
            yield events
    finally:
        running.cancel()


async def read(events: AsyncGenerator[bytes, None]) -> tuple[str, str, Any]:
    """Id, kind and data of the next event."""
    async with asyncio.timeout(WAIT_LIMIT_S):
        chunk = await anext(events)
    *_, last = chunk.decode().removesuffix("\n\n").split("\n\n")
    fields = dict(line.split(": ", 1) for line in last.splitlines())
    return fields.get("id", ""), fields["event"], json.loads(fields["data"])


def names(data: Any) -> list[str]:
    return sorted(node["name"] for node in data["nodes"])


async def test_all_nodes_come_first_and_then_those_that_changed(node_states: NodeStates) -> None:
    async with following(FleetChanges(node_states)) as events:
        _, kind, data = await read(events)
        assert (kind, names(data)) == ("all", list(NAMES))
        isolate(node_states, "gpu-2")
        _, kind, data = await read(events)
    assert (kind, names(data)) == ("changes", ["gpu-2"])
    assert data["nodes"][0]["verdict"] == "ISOLATE"


async def test_whatever_changes_while_a_reader_is_slow_is_one_event(node_states: NodeStates) -> None:
    nodes = FleetChanges(node_states)
    async with aclosing(nodes.follow()) as slow:
        await read(slow)
        async with following(nodes) as quick:
            await read(quick)
            for seq, name in enumerate(NAMES * 10, 2):
                isolate(node_states, name, seq)
                assert names((await read(quick))[2]) == [name]
            assert names((await read(slow))[2]) == list(NAMES)
            isolate(node_states, "gpu-1", 50)
            assert names((await read(slow))[2]) == ["gpu-1"]


async def test_a_node_that_is_no_longer_followed_is_named(node_states: NodeStates) -> None:
    async with following(FleetChanges(node_states)) as events:
        await read(events)
        node_states.remove([node_states.states["gpu-3"].endpoint])
        _, _, data = await read(events)
    assert (data["removed"], data["nodes"]) == (["gpu-3"], [])


async def test_who_comes_back_gets_what_changed_since(node_states: NodeStates) -> None:
    nodes = FleetChanges(node_states)
    async with following(nodes) as events:
        last_id, _, _ = await read(events)
    isolate(node_states, "gpu-1")
    node_states.remove([node_states.states["gpu-2"].endpoint])
    async with following(nodes, last_id) as events:
        _, kind, data = await read(events)
    assert (kind, names(data), data["removed"]) == ("changes", ["gpu-1"], ["gpu-2"])


@pytest.mark.parametrize("last_id", ["", "nonsense", "-1", "{run}-9999", "{run}-x", "{run}-" + "9" * 5000])
async def test_an_id_that_is_not_known_gets_all_nodes(node_states: NodeStates, last_id: str) -> None:
    nodes = FleetChanges(node_states)
    async with following(nodes) as events:
        run = (await read(events))[0].partition("-")[0]
    async with following(nodes, last_id.format(run=run)) as events:
        assert (await read(events))[1] == "all"


async def test_one_whose_removals_are_forgotten_gets_all_nodes(
    node_states: NodeStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_REMOVED", 1)
    nodes = FleetChanges(node_states)
    async with following(nodes) as events:
        first_id, _, _ = await read(events)
        node_states.remove([node_states.states["gpu-1"].endpoint])
        await read(events)
        node_states.remove([node_states.states["gpu-2"].endpoint])
        last_id, _, _ = await read(events)
    async with following(nodes, first_id) as events:
        assert (await read(events))[1] == "all"
    async with following(nodes, last_id) as events:
        assert (await read(events))[1] == "changes"


async def test_without_changes_it_shows_that_it_lives_and_which_nodes_are_quiet(
    node_states: NodeStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "ALIVE_EVERY_S", 0.0)
    now = datetime.now(UTC)
    node_states.heard_at |= {"gpu-1": now, "gpu-2": now - timedelta(seconds=60)}
    async with following(FleetChanges(node_states)) as events:
        await read(events)
        _, kind, data = await read(events)
    assert kind == "alive"
    assert data["quiet"] == {"gpu-2": int((now - timedelta(seconds=60)).timestamp() * 1000)}


def test_a_row_has_what_is_not_well_the_strictest_first() -> None:
    devices = [
        device("gpu0"),
        device("gpu10", Verdict.NO_NEW_JOBS),
        device("gpu9", Verdict.ISOLATE, codes=("XID_79",)),
        device("gpu2", Verdict.NO_NEW_JOBS),
    ]
    row = node_row(with_devices(answering(), devices, position(1)), LATER)
    assert [each["name"] for each in row["devices"]] == ["gpu9", "gpu2", "gpu10"]
    assert (row["chips"], row["chips_well"], row["heard_at"]) == (4, 1, int(LATER.timestamp() * 1000))
    details = node_details(with_devices(answering(), devices, position(1)), LATER)
    assert [each["name"] for each in details["devices"]] == ["gpu9", "gpu2", "gpu10", "gpu0"]


def test_a_row_is_of_bounded_size_whatever_the_node_sends() -> None:
    codes = tuple(f"CODE_{number}" + "x" * 1000 for number in range(20))
    devices = [device(f"gpu{number}", Verdict.ISOLATE, codes=codes) for number in range(1000)]
    node = with_contact(
        with_devices(answering(), devices, position(1)), Contact.REFUSES, "no\n\ndata: x" * 1000, AT
    )
    row = node_row(node, None)
    assert len(row["devices"]) == MAX_PARTS_SHOWN
    assert row["devices_left_out"] == 1000 - MAX_PARTS_SHOWN
    assert {len(each["codes"]) for each in row["devices"]} == {MAX_CODES_SHOWN}
    assert len(encoded(row)) < 256 * 1024
    assert b"\n" not in encoded(row)


def test_a_device_keeps_the_time_of_its_verdict_while_that_stays() -> None:
    begun = with_devices(answering(), [device("gpu0")], position(1))
    isolated = state.with_event(begun, event(2))
    again = state.with_event(isolated, replace(event(3), at=LATER))
    listed = with_devices(again, [device("gpu0", Verdict.ISOLATE)], position(4))
    well = with_devices(listed, [device("gpu0")], position(5))
    times = [node.parts["gpu0-id"].since for node in (begun, isolated, again, listed, well)]
    assert times == [None, AT, AT, AT, None]
