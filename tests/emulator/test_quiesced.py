"""While a node is quiesced nothing of ours has the vendor's library open, and that is nobody's fault."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeagent.client import Client, Event, Snapshot
from nodeagent.messages.pb import control_service_pb2 as pb
from tests.cli.order.acting import Acting, acting
from tests.waiting import wait_until


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Acting]:
    with acting(tmp_path) as node:
        yield node


def mapping(library: Path) -> list[str]:
    """The processes that have a library mapped."""
    found = []
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if str(library) in maps.read_text():
                found.append(maps.parent.name)
        except OSError:
            continue  # it has ended
    return found


def order(node: Acting, request: Any) -> None:
    with Client(node.control_socket) as client:
        client.call(request)


def snapshot(node: Acting) -> Snapshot:
    with Client(node.node.socket) as client:
        received = next(iter(client.watch(snapshot="always")))
    assert isinstance(received, Snapshot)
    return received


def until_all_take_work(node: Acting) -> None:
    verdicts: dict[str, str] = {}
    with Client(node.node.socket) as client:
        for received in client.watch(snapshot="always"):
            if isinstance(received, Snapshot):
                verdicts = {device.name: device.verdict for device in received.devices}
            elif isinstance(received, Event):
                verdicts[received.device] = received.verdict
            if set(verdicts.values()) == {"ALLOW"}:
                return


def until_let_go(node: Acting) -> None:
    node.stream.until("source_lost")
    wait_until(lambda: not mapping(node.chips.dcmi) and not mapping(node.chips.nvml), "the libraries let go")


@pytest.mark.parametrize(
    ("description", "vendor", "library"),
    [("8x910B", "ascend", "libdcmi.so"), ("2xH100", "nvidia", "libnvidia-ml.so.1")],
)
def test_nothing_has_the_library_open_until_the_node_is_resumed(
    tmp_path: Path, description: str, vendor: str, library: str
) -> None:
    with acting(tmp_path, description=description) as node:
        had_it_open = mapping(node.chips.directory / library)
        order(node, pb.QuiesceRequest(reason="driver upgrade"))
        until_let_go(node)
        quiesced = snapshot(node)
        order(node, pb.ResumeRequest())
        until_all_take_work(node)
        resumed = snapshot(node)

    assert had_it_open
    chips = [device for device in quiesced.devices if device.name != "node"]
    assert {device.observed for device in chips} == {False}
    assert {reason.text for device in chips for reason in device.reasons} == {
        f"{vendor}: quiesced by uid:0: driver upgrade"
    }
    assert quiesced.conditions == ()
    assert resumed.conditions == ()


def test_a_fault_that_came_meanwhile_is_found_when_it_is_resumed(node: Acting) -> None:
    order(node, pb.QuiesceRequest(reason="driver upgrade"))
    until_let_go(node)
    node.chips.raise_code("npu3", 0x80E18005, severity=2)
    order(node, pb.ResumeRequest())
    node.stream.until("80E18005")


def test_a_worker_with_a_call_that_hangs_lets_go_as_well(node: Acting) -> None:
    node.chips.hang("npu3", uninterruptibly=True)
    node.stream.until("driver_unresponsive")
    order(node, pb.QuiesceRequest(reason="driver upgrade"))
    until_let_go(node)
    assert {condition.code for condition in snapshot(node).conditions} == {"driver_unresponsive"}
    node.chips.release()
    order(node, pb.ResumeRequest())
    node.stream.until("cleared")
    until_all_take_work(node)


def test_a_library_that_is_gone_after_an_upgrade_is_told_when_it_is_resumed(node: Acting) -> None:
    order(node, pb.QuiesceRequest(reason="driver upgrade"))
    until_let_go(node)
    node.chips.dcmi.unlink()
    order(node, pb.ResumeRequest())
    assert str(node.chips.dcmi) in node.stream.until("source_lost")


def test_a_daemon_that_starts_on_a_quiesced_node_opens_nothing(tmp_path: Path) -> None:
    with acting(tmp_path) as node:
        order(node, pb.QuiesceRequest(reason="driver upgrade"))
        until_let_go(node)
    with node.node.daemon() as stream:
        stream.until("source_lost")
        started = snapshot(node)
        open_then = mapping(node.chips.dcmi)
        order(node, pb.ResumeRequest())
        stream.until("source_back")
        assert mapping(node.chips.dcmi)
    assert open_then == []
    assert started.conditions == ()
