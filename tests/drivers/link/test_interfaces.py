"""Interfaces as netlink tells of them: real ones, in a network namespace of the test's own."""

import os
import signal

import pytest

from nodeagent.core.model import ActiveSet, CounterMark, DeviceGone, DeviceSeen
from tests.daemon.staged import staged
from tests.drivers.link.namespace import Namespace
from tests.drivers.link.port_worker import signals, spec_of
from tests.drivers.link.tree import Tree

TINY = "tests.drivers.link.tiny_buffer"


async def test_a_port_that_loses_its_carrier_is_down_until_it_has_it_again(
    network: Namespace, tree: Tree
) -> None:
    network.add("job0")
    async with staged(spec_of(network, tree, expected_ports=("job0",))) as stage:
        await stage.polled("job0")
        network.unplug("job0")
        down = await stage.signal("PORT_DOWN", "job0", "occur")
        network.plug("job0")
        await stage.signal("PORT_DOWN", "job0", "recover")
        assert down.evidence == {"state": "no carrier"}
        assert signals(stage, "job0") == [("PORT_DOWN", "occur"), ("PORT_DOWN", "recover")]


async def test_a_port_that_an_administrator_switches_off_is_in_order_unless_it_is_expected(
    network: Namespace, tree: Tree
) -> None:
    for name in ("job0", "other0"):
        network.add(name)
    spec = spec_of(network, tree, watch=("other*",), expected_ports=("job0",))
    async with staged(spec) as stage:
        await stage.polled("job0")
        await stage.polled("other0")
        network.ip("link", "set", "dev", "other0", "down")
        network.ip("link", "set", "dev", "job0", "down")
        down = await stage.signal("PORT_DOWN", "job0", "occur")
        assert down.evidence == {"state": "switched off by an administrator"}
        await stage.polled("other0", times=2)
        assert signals(stage, "other0") == []


async def test_a_port_that_never_had_a_carrier_is_in_order_and_its_old_fault_stays_open(
    network: Namespace, tree: Tree
) -> None:
    """It may have been up before this worker: of that the poll says nothing."""
    network.add("other0", up=False)
    network.up("other0")
    async with staged(spec_of(network, tree, watch=("other0",))) as stage:
        await stage.polled("other0")
        read = next(given for given in stage.inputs if isinstance(given, ActiveSet))
        assert (read.codes, read.complete) == ((), True)
        assert "ETHERNET_PORT_DOWN" in read.unread


async def test_the_kernel_remembers_that_a_port_was_up_before_the_worker(
    network: Namespace, tree: Tree
) -> None:
    network.add("other0")
    network.unplug("other0")
    async with staged(spec_of(network, tree, watch=("other0",))) as stage:
        await stage.polled("other0")
        read = next(given for given in stage.inputs if isinstance(given, ActiveSet))
        assert [active.code for active in read.codes] == ["ETHERNET_PORT_DOWN"]


async def test_a_port_is_known_by_its_place_whatever_it_is_called(network: Namespace, tree: Tree) -> None:
    """The tree says that the interface is a card's; the kernel's rename is real."""
    network.add("eth7")
    for name in ("eth7", "ens7f0"):
        tree.interface(name, "0000:00:01.0", "0000:07:00.0")
    async with staged(spec_of(network, tree)) as stage:
        await stage.polled("eth7")
        network.ip("link", "set", "dev", "eth7", "name", "ens7f0")
        await stage.polled("ens7f0")
        network.unplug("eth7")
        await stage.signal("ETHERNET_PORT_DOWN", "ens7f0", "occur")
        seen = [given for given in stage.inputs if isinstance(given, DeviceSeen)]
        assert [(given.device, given.attributes["pci"]) for given in seen] == [
            ("eth7", "0000:07:00.0"),
            ("ens7f0", "0000:07:00.0"),
        ]
        assert not any(isinstance(given, DeviceGone) for given in stage.inputs)


async def test_interfaces_of_containers_are_not_watched(network: Namespace, tree: Tree) -> None:
    network.add("job0")
    async with staged(spec_of(network, tree, expected_ports=("job0",))) as stage:
        await stage.polled("job0")
        network.add("veth1a2b")
        network.unplug("veth1a2b")
        await stage.polled("job0", times=2)
        seen = {given.device for given in stage.inputs if isinstance(given, DeviceSeen)}
        assert seen == {"job0"}


async def test_a_port_that_is_given_to_a_container_is_gone_and_no_fault(
    network: Namespace, other_network: Namespace, tree: Tree
) -> None:
    network.add("eth7")
    tree.interface("eth7", "0000:00:01.0", "0000:07:00.0")
    async with staged(spec_of(network, tree)) as stage:
        await stage.polled("eth7")
        network.ip("link", "set", "dev", "eth7", "netns", other_network.name)
        await stage.until(lambda: any(isinstance(given, DeviceGone) for given in stage.inputs))
        assert signals(stage, "eth7") == []


async def test_an_expected_port_that_is_not_there_is_missing_until_it_comes(
    network: Namespace, tree: Tree
) -> None:
    network.add("job0")
    async with staged(spec_of(network, tree, expected_ports=("job0", "job1"))) as stage:
        await stage.polled("job1")
        read = next(
            given for given in stage.inputs if isinstance(given, ActiveSet) and given.device == "job1"
        )
        assert [active.code for active in read.codes] == ["PORT_MISSING"]
        network.add("job1")
        await stage.signal("PORT_MISSING", "job1", "recover")
        network.ip("link", "del", "dev", "job0")
        await stage.signal("PORT_MISSING", "job0", "occur")


async def test_a_thousand_flaps_are_a_few_reports_and_one_count(network: Namespace, tree: Tree) -> None:
    """The kernel counts each loss; what is reported is at most one fault a second, and how it ends."""
    network.add("job0")
    async with staged(spec_of(network, tree, expected_ports=("job0",))) as stage:
        await stage.polled("job0")
        network.batch("link set dev job0x down\nlink set dev job0x up\n" * 1000)
        network.unplug("job0")
        await stage.until(lambda: stage.health.readings["job0"]["link_losses_total.needed"] >= 1001)
        await stage.until(lambda: signals(stage, "job0")[-1:] == [("PORT_DOWN", "occur")] or None)
        await stage.polled("job0", times=2)
        reported = signals(stage, "job0")
        assert reported[-1] == ("PORT_DOWN", "occur")
        assert len(reported) < 100


@pytest.mark.parametrize("ends_up", [True, False], ids=["up at last", "down at last"])
async def test_what_the_kernel_could_not_say_a_list_of_all_interfaces_repairs(
    network: Namespace, tree: Tree, ends_up: bool
) -> None:
    """The worker stands still, its socket holds next to nothing: the kernel drops messages (ENOBUFS)."""
    network.add("job0")
    if not ends_up:
        network.unplug("job0")
        network.plug("job0")
    async with staged(spec_of(network, tree, TINY, expected_ports=("job0",))) as stage:
        await stage.polled("job0")
        pid = stage.health.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        network.batch("link set dev job0 mtu 1400\nlink set dev job0 mtu 1500\n" * 50)
        if ends_up:
            network.batch("link set dev job0x down\nlink set dev job0x up\n" * 5)
        else:
            network.unplug("job0")
        os.kill(pid, signal.SIGCONT)
        last = "recover" if ends_up else "occur"
        await stage.until(lambda: signals(stage, "job0")[-1:] == [("PORT_DOWN", last)] or None)
        await stage.until(lambda: stage.health.readings["*"]["overruns_total"] >= 1)
        assert stage.health.restarts == 0


async def test_a_flood_of_other_interfaces_reports_nothing(network: Namespace, tree: Tree) -> None:
    network.add("job0")
    async with staged(spec_of(network, tree, expected_ports=("job0",))) as stage:
        await stage.polled("job0")
        for _ in range(5):
            network.add("veth1")
            network.ip("link", "del", "dev", "veth1")
        await stage.polled("job0", times=3)
        marks = [given for given in stage.inputs if isinstance(given, CounterMark)]
        assert signals(stage, "job0") == []
        assert marks == []
