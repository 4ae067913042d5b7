"""Many nodes in one process: real stores, gRPC servers, relays and mutual TLS, and no chips.

``python -m tests.fleet.simulated FOLDER CERTIFICATES FIRST PORT...`` opens a node for each port; the first is
called ``node-FIRST``. Orders on standard input, one a line, each answered by one line:

- ``chips N``: N chips of each node are seen, well
- ``faults N``: N events of each node, each in a transaction of its own, the nodes taking turns
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from nodeagent.config.sections import GrpcConfig
from nodeagent.core.model import Event, EventKind, Level
from tests.api import samples, stage
from tests.api.stage import Stage

NODE = "node-{number:04d}"
READER = "follower.example.org"


def chips(count: int) -> list[Event]:
    """Each is seen for the first time, and takes work."""
    seen = EventKind.DEVICE_SEEN
    return [
        samples.event(device=f"gpu{number}", kind=seen, level=Level.NOT_HANDLE, code="", why="found")
        for number in range(count)
    ]


def faults(number: int) -> Event:
    """A fault that comes and goes."""
    if number % 2 == 0:
        return samples.event()
    return samples.event(kind=EventKind.CLEARED, level=Level.NOT_HANDLE)


def opened(folder: Path, certificates: Path, number: int, port: int) -> Stage:
    """A node that is not open yet."""
    name = NODE.format(number=number)
    (folder / name).mkdir(exist_ok=True)
    grpc = GrpcConfig(
        listen=f"127.0.0.1:{port}",
        tls_cert=str(certificates / "node.pem"),
        tls_key=str(certificates / "node.key"),
        tls_client_ca=str(certificates / "authority.pem"),
        roles={READER: "reader"},
    )
    return Stage(folder / name, grpc, facts=stage.named(name))


async def serve(folder: Path, certificates: Path, first: int, ports: Sequence[int]) -> None:
    nodes = [opened(folder, certificates, first + place, port) for place, port in enumerate(ports)]
    for node in nodes:
        await node.open()
    print("ready", flush=True)
    given = 0
    while order := await asyncio.to_thread(sys.stdin.readline):
        word, count = order.split()
        if word == "chips":
            for node in nodes:
                await node.commit(*chips(int(count)))
        else:
            for _ in range(int(count)):
                for node in nodes:
                    await node.commit(faults(given))
                given += 1
        print("done", flush=True)
    for node in nodes:
        await node.close()


if __name__ == "__main__":
    where, signed, begin, *listen = sys.argv[1:]
    asyncio.run(serve(Path(where), Path(signed), int(begin), [int(port) for port in listen]))
