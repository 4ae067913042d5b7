"""Users without a job say all they can at the socket of jobs: what is left of faults, orders and space."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from nodeagent.job.model import RunEvent
from tests.api.jobs.supervisor import connected
from tests.reset_unit.acting import Acting, acting

pytestmark = [pytest.mark.root, pytest.mark.slow]

MIB = 1024 * 1024
USERS = (60001, 60002)
OF_EACH = 16
FLOOD_S = 15.0
MAX_SIZE = 16 * MIB
"""The smallest that may be configured."""

FLOOD = """
import json, os, socket, sys, threading
def line(**values):
    return json.dumps(values).encode() + b"\\n"
def drain(held):
    while held.recv(65536):
        pass
for number in range(int(sys.argv[2])):
    if os.fork():
        continue
    held = socket.socket(socket.AF_UNIX)
    held.connect(sys.argv[1])
    threading.Thread(target=drain, args=(held,), daemon=True).start()
    held.sendall(line(line="hello", protocol=1, version="x", pid=1))
    held.sendall(line(line="begin", kind="training", run=1, is_running=True, in_place=False, yields=False,
                      reschedules=False))
    evidence = {f"{key:03}": "\\u00e9" * 1024 for key in range(9)}
    said = 0
    while True:
        said += 1
        held.sendall(line(line="said", number=said, run=1, what="suspected", why="\\u00e9" * 512,
                          evidence=evidence))
os.read(0, 1)
os.killpg(0, 9)
"""
"""So many processes, each of which says that its run may hang, with all the words that a line takes."""


@asynccontextmanager
async def flooded(npus: Acting) -> AsyncIterator[None]:
    folder = npus.daemon.folder
    folder.chmod(0o755)  # its own path is root's alone
    floods = [
        await asyncio.create_subprocess_exec(
            *("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"),
            *(sys.executable, "-c", FLOOD, "jobs.sock", str(OF_EACH)),
            cwd=folder,
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        for uid in USERS
    ]
    try:
        yield
    finally:
        for flood in floods:
            assert flood.stdin is not None
            flood.stdin.close()
            await flood.wait()


def used(npus: Acting) -> int:
    return sum(each.stat().st_size for each in npus.daemon.state.glob("store.db*"))


async def history(npus: Acting) -> list[tuple[int, str]]:
    """(number, kind) of all that is kept but what is told of jobs."""
    said = await npus.daemon.command("events", "--after", "0", "--socket", npus.daemon.socket)
    found = [json.loads(line) for line in said[1].splitlines()]
    return [(each["seq"], each["kind"]) for each in found if not each["kind"].startswith("job_")]


async def test_a_flood_of_what_supervisors_say_takes_neither_faults_nor_orders_nor_the_disk(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "2x910B") as npus:
        npus.mode = "off"
        npus.daemon.sections = ("[store]", f'max_size = "{MAX_SIZE // MIB}MiB"')
        await npus.start()
        await npus.read_again()
        assert (await npus.order("isolate", "npu0"))[0] == 0
        npus.break_("npu1")
        await npus.event(EventKind.RAISED, "", "npu1")
        before, size = await history(npus), used(npus)

        async with flooded(npus):
            async with connected(npus.daemon.folder / "jobs.sock") as calm:
                await calm.begin()
                await calm.say(RunEvent.STARTED)
                await asyncio.sleep(FLOOD_S)
                await calm.say(RunEvent.EXITED)
            await npus.order("release", "npu0")  # on a busy machine the answer may come too late for it

        async def audited() -> bool:
            audit = await npus.daemon.command("audit", "--socket", npus.daemon.folder / "c.sock")
            return "IsolateDevice" in audit[1] and "ReleaseDevice" in audit[1]

        await npus.daemon.comes(audited, "both orders in the audit log")
        after = await history(npus)
        assert after[: len(before)] == before
        print(f"the store grew by {(used(npus) - size) / MIB:.1f} MiB in {FLOOD_S:.0f} s")
        assert used(npus) - size < 8 * MIB
