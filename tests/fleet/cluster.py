"""A cluster on loopback: simulated nodes in a few processes, each of which can be killed and started anew."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.api.access.tcp import SERVER_NAMES
from tests.api.certificates import Authority
from tests.fleet.simulated import NODE, READER
from tests.waiting import Lines

FIRST_PORT, LAST_PORT = 10_000, 30_000
"""Below those that the kernel gives to whoever asks for any."""

START_LIMIT_S = 300.0


@dataclass
class Machine:
    """One process and its nodes, by their numbers."""

    folder: Path
    first: int
    ports: Sequence[int]
    process: subprocess.Popen[str] | None = field(default=None)
    _said: Lines | None = field(default=None)

    @property
    def names(self) -> list[str]:
        return [NODE.format(number=self.first + place) for place in range(len(self.ports))]

    def spawn(self) -> None:
        """Does not wait for it: several start side by side."""
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.fleet.simulated"),
                *map(str, (self.folder, self.folder / "certificates", self.first, *self.ports)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        self._said = Lines(self.process.stdout)

    def answered(self) -> None:
        """Until what it does now is done: its start, or an order."""
        assert self._said
        assert self._said.readline(START_LIMIT_S) in ("ready\n", "done\n")

    def order(self, order: str) -> None:
        assert self.process
        assert self.process.stdin
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """Kill -9: no node of it can say a word."""
        assert self.process
        assert self.process.stdin
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()

    def stop(self) -> None:
        """The end of its standard input ends it."""
        if self.process is None or self.process.poll() is not None:
            return
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()


class Cluster:
    """``nodes`` is the list of them, as ``nodeagent fleet`` takes it. Open it with ``cluster``."""

    def __init__(self, folder: Path, machines: int, nodes_each: int) -> None:
        self.folder = folder
        certificates = folder / "certificates"
        certificates.mkdir()
        authority = Authority(certificates)
        authority.issue("node", alternative=SERVER_NAMES)
        own = authority.issue(READER)
        self.certificates = ("--ca", authority.certificate, "--cert", own.certificate, "--key", own.key)
        ports = _free_ports(machines * nodes_each)
        self.machines = [
            Machine(folder, first, ports[first : first + nodes_each])
            for first in range(0, len(ports), nodes_each)
        ]
        self.nodes = folder / "nodes"
        self.nodes.write_text(
            "".join(
                f"{name} 127.0.0.1:{port}\n"
                for machine in self.machines
                for name, port in zip(machine.names, machine.ports, strict=True)
            )
        )

    @property
    def names(self) -> list[str]:
        return [name for machine in self.machines for name in machine.names]

    def start(self, machines: Sequence[Machine] | None = None) -> None:
        started = self.machines if machines is None else machines
        for machine in started:
            machine.spawn()
        for machine in started:
            machine.answered()

    def order(self, order: str, machines: Sequence[Machine] | None = None) -> None:
        """To all of them, side by side."""
        asked = self.machines if machines is None else machines
        for machine in asked:
            machine.order(order)
        for machine in asked:
            machine.answered()


@contextmanager
def cluster(folder: Path, machines: int, nodes_each: int) -> Iterator[Cluster]:
    opened = Cluster(folder, machines, nodes_each)
    try:
        opened.start()
        yield opened
    finally:
        for machine in opened.machines:
            machine.stop()


@contextmanager
def following(cluster: Cluster, out: Path, *options: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """A follower that appends its lines to a file; it is ended as a service manager ends it."""
    command = (sys.executable, "-m", "nodeagent.cli", "fleet", "--nodes", cluster.nodes, "-o", "json")
    with out.open("ab") as lines:
        process = subprocess.Popen([*command, *cluster.certificates, *options], stdout=lines)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(30)


def _free_ports(count: int) -> list[int]:
    """That nobody listens on now."""
    found: list[int] = []
    for port in range(FIRST_PORT, LAST_PORT):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise AssertionError(f"{count} free ports from {FIRST_PORT} on: only {len(found)}")
