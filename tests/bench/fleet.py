"""A thousand nodes followed by one process: what it costs, and that nothing is missing when some are killed.

The nodes are real gRPC servers with real stores and mutual TLS on loopback, in ten processes. One of these,
with a hundred nodes, is killed; then the follower is. Memory and processor time are the follower's own; what
takes time shares the machine with the nodes.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from tests.bench.shared import processes
from tests.bench.shared.daemon import scratch
from tests.bench.shared.figures import Figure
from tests.fleet.cluster import Cluster, Machine, cluster, following
from tests.fleet.expected import Expected
from tests.fleet.output import Output
from tests.waiting import wait_until

TITLE: Final = "1,000 nodes followed by one process"
MACHINES: Final = 10
NODES_EACH: Final = 100
CHIPS: Final = 8
EVENTS_EACH: Final = 10
QUIET_S: Final = 30.0
LIMIT_S: Final = 300.0

BUDGET_KIB_A_NODE: Final = 256.0
BUDGET_QUIET_PERCENT: Final = 5.0


def run() -> Iterator[Figure]:
    with scratch() as folder, cluster(folder, MACHINES, NODES_EACH) as nodes:
        nodes.order(f"chips {CHIPS}")
        measured = _Measured(nodes, folder)
        yield from measured.followed()
        yield from measured.restarted()


class _Measured:
    def __init__(self, nodes: Cluster, folder: Path) -> None:
        self._nodes = nodes
        self._out = folder / "output"
        self._positions = folder / "positions"
        self._output = Output(self._out)
        self._expected = Expected(nodes, self._output, CHIPS)
        self._last = self._expected.last

    def followed(self) -> Iterator[Figure]:
        begun_s = time.monotonic()
        with self._follower() as process:
            wait_until(lambda: len(self._output.read().begun) == len(self._last), "states", LIMIT_S)
            yield Figure(
                name="start -> state of each node",
                value=time.monotonic() - begun_s,
                unit="s",
                note="(at most 250 connections a second)",
            )
            yield _memory("memory, all connected", process, len(self._last))
            yield from self._quiet(process)
            yield from self._busy(process)
            yield from self._some_killed(process)
            yield _memory("memory, after all that", process, len(self._last))
            self._expected.faults(1)
            process.kill()

    def restarted(self) -> Iterator[Figure]:
        """The follower was killed amid events; it goes on where it was."""
        with self._follower() as process:
            self._faults(1)
            yield self._complete("events missing after kill -9 of the follower")
            yield Figure(name="events that came twice then", value=self._output.repeated, unit="events")
            yield Figure(
                name="whole states told anew then",
                value=sum(self._output.states.values()) - len(self._last),
                unit="states",
            )
            assert process.poll() is None

    def _quiet(self, process: "subprocess.Popen[bytes]") -> Iterator[Figure]:
        before_ns = processes.spent_ns(process.pid)
        time.sleep(QUIET_S)
        percent = (processes.spent_ns(process.pid) - before_ns) / 1e9 / QUIET_S * 100
        yield Figure(
            name="processor, nothing happens", value=percent, unit="% of one", budget=BUDGET_QUIET_PERCENT
        )

    def _busy(self, process: "subprocess.Popen[bytes]") -> Iterator[Figure]:
        before_ns = processes.spent_ns(process.pid)
        self._faults(EVENTS_EACH)
        events = EVENTS_EACH * len(self._last)
        spent_us = (processes.spent_ns(process.pid) - before_ns) / 1e3
        yield Figure(
            name="processor time of an event", value=spent_us / events, unit="us", note=f"({events} events)"
        )
        yield self._complete("events missing")

    def _some_killed(self, process: "subprocess.Popen[bytes]") -> Iterator[Figure]:
        """One process of nodes is killed; the others go on. Then it comes back."""
        killed, *others = self._nodes.machines
        self._expected.faults(1)
        killed.kill()
        self._faults(1, others)
        before_ns, begun_s = processes.spent_ns(process.pid), time.monotonic()
        self._nodes.start([killed])
        served_s = time.monotonic()
        self._faults(1, [killed])
        back_s = time.monotonic()
        yield Figure(
            name=f"{NODES_EACH} nodes killed: serving -> all events",
            value=back_s - served_s,
            unit="s",
            note=f"(their own start {served_s - begun_s:.1f} s)",
        )
        yield Figure(
            name="processor time of a node's return",
            value=(processes.spent_ns(process.pid) - before_ns) / 1e6 / NODES_EACH,
            unit="ms",
        )
        self._faults(1)
        yield self._complete("events missing after that")

    def _faults(self, each: int, machines: list[Machine] | None = None) -> None:
        """Until they were told."""
        self._expected.faults(each, machines)
        self._expected.wait(machines, LIMIT_S)

    def _follower(self) -> AbstractContextManager["subprocess.Popen[bytes]"]:
        return following(self._nodes, self._out, "--positions", self._positions)

    def _complete(self, name: str) -> Figure:
        missing = self._output.read().missing(self._last)
        assert not self._output.out_of_order
        return Figure(
            name=name,
            value=sum(map(len, missing.values())),
            unit="events",
            note=f"(of {sum(self._last.values()):,})",
        )


def _memory(name: str, process: "subprocess.Popen[bytes]", nodes: int) -> Figure:
    used = processes.alone_bytes([process.pid])
    return Figure(
        name=name,
        value=used / 2**20,
        unit="MiB",
        budget=BUDGET_KIB_A_NODE * nodes / 1024,
        note=f"({used / nodes / 1024:.0f} KiB a node)",
    )
