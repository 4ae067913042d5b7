"""Messages of rtnetlink, as the kernel lays them out: what this machine's kernel cannot make is encoded
here.
"""

import socket
import subprocess
import sys
from typing import Any

from pyroute2.netlink.rtnl import RTM_DELLINK, RTM_NEWLINK
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from nodeagent.drivers.link.interface import Interface
from nodeagent.drivers.link.netlink import _interface, _messages


def encoded(kind: int, index: int, *attributes: tuple[str, Any], family: int = socket.AF_UNSPEC) -> bytes:
    message: Any = ifinfmsg()
    message["family"] = family
    message["index"] = index
    message["flags"] = (1 << 0) | (1 << 16)
    message["header"]["type"] = kind
    message["attrs"] = list(attributes)
    message.encode()
    return bytes(message.data)


def test_a_member_of_a_bond_names_its_bond() -> None:
    of_bond = ("IFLA_LINKINFO", {"attrs": [("IFLA_INFO_SLAVE_KIND", "bond")]})
    message = encoded(
        RTM_NEWLINK, 3, ("IFLA_IFNAME", "eth0"), ("IFLA_MASTER", 9), ("IFLA_CARRIER_DOWN_COUNT", 4), of_bond
    )
    assert _interface(message) == Interface(
        index=3, name="eth0", is_enabled=True, has_carrier=True, losses=4, bond=9
    )


def test_a_port_of_a_bridge_is_in_no_bond() -> None:
    of_bridge = ("IFLA_LINKINFO", {"attrs": [("IFLA_INFO_SLAVE_KIND", "bridge")]})
    message = encoded(RTM_NEWLINK, 3, ("IFLA_IFNAME", "eth0"), ("IFLA_MASTER", 9), of_bridge)
    assert _interface(message).bond == 0


def test_an_interface_that_leaves_a_bridge_is_not_gone() -> None:
    """The kernel says so by RTM_DELLINK of the family AF_BRIDGE (br_ifinfo_notify in
    net/bridge/br_netlink.c).
    """
    left = encoded(RTM_DELLINK, 3, family=socket.AF_BRIDGE)
    gone = encoded(RTM_DELLINK, 4)
    assert [(kind, index) for kind, _, index, _ in _messages(left + gone)] == [(RTM_DELLINK, 4)]


def test_what_is_cut_off_is_left_out() -> None:
    whole = encoded(RTM_NEWLINK, 3, ("IFLA_IFNAME", "eth0"))
    for length in range(len(whole)):
        assert list(_messages(whole[:length])) == []


def test_the_driver_is_imported_without_pyroute2_which_takes_long() -> None:
    code = "import sys, nodeagent.drivers.link.driver; sys.exit('pyroute2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
