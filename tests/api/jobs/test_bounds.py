"""What supervisors may not do: each is refused in plain words, and nobody else waits for it."""

import asyncio
import os
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from nodeagent.api.access.quota import Rate
from nodeagent.api.jobs import limits
from nodeagent.api.jobs.stream import ConnectionEnded, LineStream
from nodeagent.core.model import Assertion, EventKind, JobBegun, JobStage, Peer, Signal
from nodeagent.job import lines
from nodeagent.job.model import RunEvent, RunReport
from nodeagent.system.processes import START, stat_of
from tests.api.jobs.stage import DoorStage, staged
from tests.api.jobs.supervisor import connected, slurm_step, stop
from tests.waiting import WAIT_LIMIT_S, until

HELLO = lines.encode(lines.SupervisorHello(pid=1, version="test"))
BEGIN = lines.encode(
    lines.JobBegin(kind="training", run=1, is_running=False, in_place=True, yields=False, reschedules=False)
)


async def refusal(stage: DoorStage, *sent: bytes) -> str:
    """Why a connection that begins so is refused; what it is told before that is passed over.

    The kernel resets a connection that was closed before all was read; what was said comes first.
    """
    loop, heard = asyncio.get_running_loop(), b""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.setblocking(False)
        async with asyncio.timeout(WAIT_LIMIT_S):
            await loop.sock_connect(peer, str(stage.socket))
            with suppress(BrokenPipeError):
                await loop.sock_sendall(peer, b"".join(sent))
            with suppress(ConnectionResetError):
                while chunk := await loop.sock_recv(peer, lines.MAX_LINE_BYTES):
                    heard += chunk
    said = [lines.decode(line) for line in heard.splitlines()]
    (why,) = [line.why for line in said if isinstance(line, lines.SupervisorRefused)]
    return why


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ([b"GET / HTTP/1.1\r\n"], "not JSON: Expecting value: line 1 column 1 (char 0)"),
        ([b"[]\n"], "an object, not []"),
        ([b"[" * 50_000 + b"\n"], "not JSON: maximum recursion depth exceeded while decoding a JSON array"),
        ([b"x" * 70_000], "a line has at most 65536 bytes"),
        ([lines.encode(lines.AskChips(number=1))], "the first line is hello"),
        (
            [lines.encode(lines.SupervisorHello(pid=1, version="test", protocol=0))],
            "protocol: 1 or later, not 0",
        ),
        ([HELLO, HELLO], "begin, said, ask or bye is wanted here"),
        ([HELLO, lines.encode(lines.ReportTaken(number=1))], "begin, said, ask or bye is wanted here"),
        ([HELLO, lines.encode(lines.AskChips(number=1))], "begin comes before said, ask and bye"),
        (
            [HELLO, BEGIN.replace(b'"run":1', b'"run":0')],
            "run: a whole number from 1 to 2147483647 is needed",
        ),
        (
            [HELLO, BEGIN.replace(b"training", b"\\u0000")],
            "kind: 1 to 128 printable characters are needed, not '\\x00'",
        ),
        (
            [HELLO, BEGIN, lines.encode(lines.Bye(number=1, status=2**40))],
            "status: an exit status is needed",
        ),
    ],
)
async def test_what_is_no_line_of_a_supervisor_ends_its_connection_with_the_reason(
    tmp_path: Path, sent: list[bytes], why: str
) -> None:
    async with staged(tmp_path) as stage:
        assert (await refusal(stage, *sent)).startswith(why)


async def test_who_says_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HELLO_LIMIT_S", 0.1)
    async with staged(tmp_path) as stage:
        assert await refusal(stage) == "no hello within 0.1 s"


async def test_who_does_not_begin_gives_its_place_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BEGIN_LIMIT_S", 0.1)
    async with staged(tmp_path) as stage:
        assert await refusal(stage, HELLO) == "no begin within 0.1 s"


@pytest.mark.root
async def test_users_of_any_number_leave_places_to_the_jobs_that_cgroups_prove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One user has thousands of numbers, by subuid(5)."""
    monkeypatch.setattr(limits, "BEGIN_LIMIT_S", WAIT_LIMIT_S)
    async with staged(tmp_path) as stage, crowd(stage, 50) as heard:
        welcome = [line for line in heard if isinstance(line, lines.Welcome)]
        refused = {line.why for line in heard if isinstance(line, lines.SupervisorRefused)}
        why = (
            "there are 40 supervisors after the first of each job that a cgroup proves, as many as there may"
            " be; try again later"
        )
        assert (len(welcome), refused) == (limits.UNPROVEN.total, {why})
        with slurm_step(os.getpid()) as within:
            async with connected(stage.socket, *within) as first:
                assert (await first.greet()).job == f"slurm:{os.getpid()}.0"
                async with connected(stage.socket, *within) as second:
                    assert (await second.hear(lines.SupervisorRefused)).why == why


CROWD = """
import os, socket, sys
for number in range(int(sys.argv[2])):
    if os.fork():
        continue
    os.setuid(60000 + number % 5)
    held = socket.socket(socket.AF_UNIX)
    held.connect(sys.argv[1])
    try:
        held.sendall(sys.argv[3].encode())
    except BrokenPipeError:
        pass
    os.write(1, held.makefile("rb").readline())
    os.read(0, 1)
    os._exit(0)
os.read(0, 1)
"""
"""Processes of five users, each with a connection; they stay until the standard input ends."""


@asynccontextmanager
async def crowd(stage: DoorStage, number: int) -> AsyncIterator[list[lines.Line]]:
    """What so many connections hear first."""
    stage.socket.parent.chmod(0o755)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CROWD, stage.socket.name, str(number), HELLO.decode()),
        cwd=stage.socket.parent,  # its own path is root's alone
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(WAIT_LIMIT_S):
            yield [lines.decode(await process.stdout.readline()) for _ in range(number)]
    finally:
        process.stdin.close()
        await process.wait()


async def test_one_user_has_no_more_than_its_places_and_gets_them_back(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, AsyncExitStack() as left:
        writers = []
        for _ in range(limits.SUPERVISORS.each):
            _, writer = await asyncio.open_unix_connection(stage.socket)
            left.callback(writer.close)
            writers.append(writer)
        why = await refusal(stage)
        assert why.startswith("uid:0 has 32 supervisors, as many as one identity may have")
        writers.pop().close()
        async with asyncio.timeout(WAIT_LIMIT_S):
            while not (why := await refusal(stage, b"x\n")).startswith("not JSON"):
                assert "may have" in why or "too often" in why


async def test_a_job_beyond_those_that_the_core_keeps_is_refused(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        for number in range(64):
            await stage.do(begun(number))
        assert (
            await refusal(stage, HELLO, BEGIN)
            == f"pid:{os.getpid()} is not supervised: 64 jobs are supervised already"
        )


async def test_who_never_reads_is_dropped() -> None:
    here, there = socket.socketpair()
    with there:
        reader, writer = await asyncio.open_unix_connection(sock=here)
        stream = LineStream(reader, writer, Rate(limits.LINE_RATE), "test")
        line = lines.SupervisorRefused(why="x" * 30_000)
        with pytest.raises(ConnectionEnded):
            write_for_ever(stream, line)
        with pytest.raises(ConnectionEnded):
            await stream.next()
        assert writer.transport.is_closing()


async def test_a_flood_of_lines_holds_up_neither_faults_nor_what_others_are_told(tmp_path: Path) -> None:
    """Eight that ask and say without pause, one that sends what is no line, one that never reads."""
    async with staged(tmp_path) as stage, AsyncExitStack() as left:
        calm = await left.enter_async_context(connected(stage.socket))
        await calm.begin()
        await calm.say(RunEvent.STARTED)
        floods = [await left.enter_async_context(connected(stage.socket)) for _ in range(8)]
        for number, flood in enumerate(floods):
            await flood.begin(is_running=True)
            line = lines.encode(lines.AskChips(number=1))
            if number % 2:
                line = b"".join(
                    lines.encode(RunReport(number=each, run=1, what=RunEvent.SUSPECTED))
                    for each in range(1, 500)
                )
            flood.write(line * (20_000 // len(line.splitlines())))
        took_s = []
        for number in range(40):
            begun_s = time.monotonic()
            await stage.do(signal(number))
            took_s.append(time.monotonic() - begun_s)
        begun_s = time.monotonic()
        await stage.do(stop(f"pid:{calm.pid}"))
        await calm.wanted("stop")
        delay_s = time.monotonic() - begun_s
        suspected = len(stage.events(EventKind.JOB_SUSPECTED))
        assert stage.jobs[f"pid:{calm.pid}"].stage is JobStage.ASKED
        # Four that say 500 things each: what goes to the disk is bounded, whatever they send.
        assert suspected < 4 * 100
        print(
            f"a fault: median {statistics.median(took_s) * 1e3:.1f} ms, slowest {max(took_s) * 1e3:.1f} ms;"
            f" told to stop after {delay_s * 1e3:.1f} ms; {suspected} of 2000 were taken meanwhile"
        )


CONNECTS = """
import socket, sys
while True:
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(sys.argv[1])
        except OSError:
            pass
"""


async def test_a_flood_of_connections_holds_up_neither_faults_nor_what_a_job_is_told(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage, connected(stage.socket) as calm:
        await calm.begin()
        await calm.say(RunEvent.STARTED)
        floods = [
            await asyncio.create_subprocess_exec(sys.executable, "-c", CONNECTS, str(stage.socket))
            for _ in range(2)
        ]
        try:
            await until(lambda: stage.listener.refused > 20)
            took_s = []
            for number in range(40):
                begun_s = time.monotonic()
                await stage.do(signal(number))
                took_s.append(time.monotonic() - begun_s)
            await stage.do(stop(f"pid:{calm.pid}"))
            await calm.wanted("stop")
        finally:
            for flood in floods:
                flood.kill()
                await flood.wait()
        print(f"a fault: median {statistics.median(took_s) * 1e3:.1f} ms, slowest {max(took_s) * 1e3:.1f} ms")


def write_for_ever(stream: LineStream, line: lines.SupervisorRefused) -> None:
    while True:
        stream.write(line)


def signal(number: int) -> Signal:
    occurs = number % 2 == 0
    assertion = Assertion.OCCUR if occurs else Assertion.RECOVER
    return Signal(source="ascend", device="npu0", code="SubHealthFault", assertion=assertion)


def begun(number: int) -> JobBegun:
    peer = Peer(pid=1, start_time=int(stat_of(Path("/proc/1"))[1][START]), uid=number)
    return JobBegun(job=f"slurm:{number}.0", kind="training", peer=peer)
