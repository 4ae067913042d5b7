"""Which ports there are, what they are called, and which chips are behind them: trees of sysfs, no worker."""

from collections.abc import Sequence
from typing import Any

import pytest

from nodeagent.drivers.link.faults import LinkState, faults_of
from nodeagent.drivers.link.interface import Interface
from nodeagent.drivers.link.place import NearbyChips, has_any, place_of_interface
from nodeagent.drivers.link.ports import Port, ports_of, rdma_ports
from nodeagent.drivers.link.watched import WatchedPort
from tests.drivers.link.tree import HUAWEI_NPU, Tree

ROOT_PORT, SWITCH, OTHER_SWITCH = "0000:00:01.0", "0000:01:00.0", "0000:41:00.0"


def interface(name: str, index: int, **words: Any) -> Interface:
    return Interface(index=index, name=name, **{"is_enabled": True, "has_carrier": True, **words})


def found(
    tree: Tree, *interfaces: Interface, named: dict[str, Sequence[str]] | None = None, **words: Any
) -> dict[str, Port]:
    chips = NearbyChips(tree.root, named or {})
    chips.look()
    return ports_of(
        interfaces,
        rdma_ports(tree.root),
        place_of=lambda name: place_of_interface(tree.root, name),
        chips_of=chips.of,
        **words,
    )


def test_the_interface_and_the_rdma_port_of_one_function_are_one_port(tree: Tree) -> None:
    tree.rdma("mlx5_0", ROOT_PORT, "0000:02:00.0", layer="Ethernet")
    tree.interface("ens2f0np0", ROOT_PORT, "0000:02:00.0", phys_port_name="p0")
    (port,) = found(tree, interface("ens2f0np0", 4)).values()
    assert (port.name, port.is_needed, port.is_infiniband) == ("ens2f0np0", True, False)
    assert port.device().attributes == {
        "driver": "mlx5_core",
        "pci": "0000:02:00.0",
        "rdma": "mlx5_0",
        "link_layer": "Ethernet",
        "firmware": "28.41.1000",
        "board": "MT_0000000838",
    }


def test_an_infiniband_port_bears_the_name_of_its_device(tree: Tree) -> None:
    """The state of the IP interface on top is not its state."""
    tree.rdma("mlx5_3", ROOT_PORT, "0000:02:00.0")
    tree.interface("ib3", ROOT_PORT, "0000:02:00.0")
    (port,) = found(tree, interface("ib3", 4, has_carrier=False)).values()
    assert (port.name, port.is_infiniband) == ("mlx5_3", True)


def test_two_ports_of_one_function_are_two_devices(tree: Tree) -> None:
    for number in (1, 2):
        tree.rdma("mlx4_0", ROOT_PORT, "0000:02:00.0", port=number)
    first, second = found(tree).values()
    assert (first.name, first.device().identity, first.device().attributes["pci"]) == (
        "mlx4_0",
        "",
        "0000:02:00.0",
    )
    assert (second.name, second.device().identity) == ("mlx4_0/2", "0000:02:00.0/1")
    assert "pci" not in second.device().attributes


@pytest.mark.parametrize("what", ["a guest's", "a representor", "wireless", "on USB"])
def test_what_comes_and_goes_with_its_users_is_no_port(tree: Tree, what: str) -> None:
    name = "pf0vf1" if what == "a representor" else ""
    bus = "usb" if what == "on USB" else "pci"
    here = tree.interface("net0", ROOT_PORT, "0000:02:00.0", phys_port_name=name, bus=bus)
    if what == "a guest's":
        (here / "device").resolve().joinpath("physfn").mkdir()
    if what == "wireless":
        (here / "phy80211").mkdir()
    assert found(tree, interface("net0", 2)) == {}


def test_a_node_without_a_port_of_hardware_has_nothing_to_watch(tree: Tree) -> None:
    assert not has_any(tree.root)
    tree.interface("eth0", ROOT_PORT, "0000:02:00.0")
    assert has_any(tree.root)


def test_the_bond_of_ports_is_watched_and_needed_in_their_place(tree: Tree) -> None:
    tree.rdma("mlx5_bond_0", ROOT_PORT, "0000:02:00.0", layer="Ethernet")
    for function in (0, 1):
        tree.interface(f"eth{function}", ROOT_PORT, f"0000:02:00.{function}")
    bond = interface("bond0", 9, kind="bond")
    ports = found(tree, interface("eth0", 2, bond=9), interface("eth1", 3, bond=9), bond)
    assert {name: port.is_needed for name, port in ports.items()} == {
        "eth0": False,
        "eth1": False,
        "bond0": True,
    }
    assert ports["bond0"].members == (2, 3)


def test_a_bond_with_an_idle_member_is_degraded_and_up(tree: Tree) -> None:
    for function in (0, 1):
        tree.interface(f"eth{function}", ROOT_PORT, f"0000:02:00.{function}")
    interfaces = {
        2: interface("eth0", 2, bond=9),
        3: interface("eth1", 3, bond=9, has_carrier=False, gains=1),
        9: interface("bond0", 9, kind="bond"),
    }
    ports = found(tree, *interfaces.values())
    standing = {}
    for name, port in ports.items():
        watched = WatchedPort(port)
        standing[name] = dict(faults_of(port, watched.look(interfaces), 0.0).codes)
    assert standing == {
        "eth0": {},
        "eth1": {"ETHERNET_PORT_DOWN": {"state": "no carrier"}},
        "bond0": {"BOND_DEGRADED": {"members_down": "eth1"}},
    }


def test_the_chips_behind_a_port_are_those_below_the_nearest_common_switch(tree: Tree) -> None:
    tree.rdma("mlx5_0", ROOT_PORT, SWITCH, "0000:02:00.0", "0000:03:00.0")
    tree.chip(ROOT_PORT, SWITCH, "0000:02:01.0", "0000:04:00.0")
    tree.chip(ROOT_PORT, OTHER_SWITCH, "0000:42:01.0", "0000:44:00.0")
    tree.chip("0000:00:02.0", "0000:84:00.0", files=HUAWEI_NPU)
    (port,) = found(tree).values()
    assert port.chips == ("0000:04:00.0",)


def test_a_port_that_has_no_bridge_in_common_with_a_chip_has_those_that_the_configuration_names(
    tree: Tree,
) -> None:
    tree.rdma("hns_0", ROOT_PORT, "0000:02:00.0", layer="Ethernet")
    tree.interface("eth2", ROOT_PORT, "0000:02:00.0")
    tree.chip("0000:00:02.0", "0000:84:00.0", files=HUAWEI_NPU)
    here = interface("eth2", 5)
    assert found(tree, here)["eth2"].chips == ()
    for name in ("eth2", "hns_0"):
        port = found(tree, here, named={name: ("npu0", "npu1")})["eth2"]
        assert port.device().attributes["chips"] == "npu0,npu1"


def test_a_name_that_means_another_device_is_marked(tree: Tree) -> None:
    names = ["node", "npu3", "gpu0", "ub1", "eth0", "ünet"]
    interfaces = [interface(name, index + 2) for index, name in enumerate(names)]
    shown = list(found(tree, *interfaces, watch=("*",)))
    assert shown == ["port:node", "port:npu3", "port:gpu0", "port:ub1", "eth0", "%C3%BCnet"]


def test_more_rdma_ports_than_expected_are_not_judged_by_the_expected_rate(tree: Tree) -> None:
    tree.rdma("mlx5_0", ROOT_PORT, "0000:02:00.0")
    (port,) = found(tree).values()
    slow = LinkState(is_up=True, is_enabled=True, text="4: ACTIVE", rate_gbps=200.0)
    assert list(faults_of(port, slow, 400.0).codes) == ["PORT_SLOW"]
    assert list(faults_of(port, slow, 0.0).codes) == []
