"""A network namespace of a test's own, with pairs of virtual interfaces."""

import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

_NUMBERS = itertools.count()


class Namespace:
    """``within`` is a command that runs another one in it. An interface NAME has the other end NAMEx."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.within = ("ip", "netns", "exec", name)

    def ip(self, *arguments: str) -> None:
        subprocess.run(("ip", "-n", self.name, *arguments), check=True, capture_output=True, timeout=30)

    def batch(self, lines: str) -> None:
        """Many commands of ip, as fast as it can."""
        command = ("ip", "-n", self.name, "-batch", "-")
        subprocess.run(command, input=lines, text=True, check=True, capture_output=True, timeout=60)

    def add(self, name: str, *, up: bool = True) -> None:
        self.ip("link", "add", "name", name, "type", "veth", "peer", "name", f"{name}x")
        if up:
            self.up(name)
            self.plug(name)

    def up(self, name: str) -> None:
        """An administrator switches the interface on."""
        self.ip("link", "set", "dev", name, "up")

    def plug(self, name: str) -> None:
        """The other end comes up, and with it the carrier."""
        self.ip("link", "set", "dev", f"{name}x", "up")

    def unplug(self, name: str) -> None:
        self.ip("link", "set", "dev", f"{name}x", "down")


@contextmanager
def namespace() -> Iterator[Namespace]:
    name = f"nodeagent-test-{os.getpid()}-{next(_NUMBERS)}"
    subprocess.run(("ip", "netns", "add", name), check=True, timeout=30)
    try:
        yield Namespace(name)
    finally:
        subprocess.run(("ip", "netns", "del", name), check=True, timeout=30)
