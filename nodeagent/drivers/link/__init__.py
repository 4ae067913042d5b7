"""The driver ``link``: the node's network ports, by netlink and sysfs."""
