"""The outlets as a process of their own, fed by its parent: real gRPC servers, store and event feed, no core.

``python -m tests.bench.shared.stage_server DIRECTORY``; orders on stdin, one a line, each answered by one
line: ``commit N`` commits N events in one transaction, ``fill N`` many of them, as fast as the store takes
them.
"""

import asyncio
import sys
from pathlib import Path

from tests.api.samples import event
from tests.api.stage import Stage

A_COMMIT = 512


async def _serve(directory: Path) -> None:
    stage = Stage(directory)
    await stage.open()
    print("ready", flush=True)
    while order := await asyncio.to_thread(sys.stdin.readline):
        name, count = order.split()
        left = int(count)
        while left > 0:
            events = min(left, A_COMMIT) if name == "fill" else left
            await stage.commit(*(event() for _ in range(events)))
            left -= events
        print("done", flush=True)
    await stage.close()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
