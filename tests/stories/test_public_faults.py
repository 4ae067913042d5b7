"""Faults that other systems found: a real daemon over emulated NPUs, and the call that senders use."""

import asyncio
import json
import math
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nodeagent.client import AsyncClient, ClientError, Condition, EventKind, Handling, Level, Verdict
from nodeagent.core.state.limits import MAX_REPORTED_ON_DEVICE
from nodeagent.messages import enums
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.messages.pb import fault_service_pb2
from tests.harness.configuration import ROOT
from tests.harness.subscriber import without_gap
from tests.stories.npus import CHIPS, Npus, eight_npus
from tests.stories.public_faults import (
    BROKEN,
    NO_CODE,
    OCCUR,
    RECOVER,
    SLOW,
    control,
    fault,
    message,
)
from tests.waiting import WAIT_LIMIT_S

MINDCLUSTER = ROOT / "tests/fixtures/mindcluster/publicFaultConfiguration.json"
LISTS = {
    "NotHandleFaultCodes": Level.NOT_HANDLE,
    "SubHealthFaultCodes": Level.SUB_HEALTH,
    "PreSeparateNPUCodes": Level.PRE_SEPARATE_NPU,
    "SeparateNPUCodes": Level.SEPARATE_NPU,
}
STANCE = {
    Level.NOT_HANDLE: (Verdict.ALLOW, Handling.NONE),
    Level.SUB_HEALTH: (Verdict.ALLOW, Handling.JOB_STRATEGY),
    Level.PRE_SEPARATE_NPU: (Verdict.NO_NEW_JOBS, Handling.NONE),
    Level.SEPARATE_NPU: (Verdict.ISOLATE, Handling.RESCHEDULE),
}

SENDERS = ("CCAE", "pingmesh", "Netmind")
FLOOD = 3_000
NEW = 50
"""Faults of a message that occur; as many recover that occurred in the sender's message before."""
BAD_EVERY = 7
KILLS = 4


@pytest.fixture
async def npus(tmp_path: Path) -> AsyncIterator[Npus]:
    async with eight_npus(tmp_path) as npus:
        npus.tables = (*npus.tables, "public.toml")
        yield npus


async def open_reports(npus: Npus) -> list[Condition]:
    return [each for each in (await npus.snapshot()).conditions if each.source == "public"]


async def test_each_code_is_raised_and_recovers_at_the_level_that_mindcluster_gives_it(npus: Npus) -> None:
    lists = json.loads(MINDCLUSTER.read_text())["publicFaultCode"]
    levels = {code: level for name, level in LISTS.items() for code in lists[name]}
    assert len(levels) == 30
    await npus.start()
    await npus.observed()
    async with control(npus) as client:
        for number, code in enumerate(levels):
            chip = number % len(CHIPS)
            for sender, chips, device in (("CCAE", (chip,), CHIPS[chip]), ("Netmind", (), "node")):
                fault_id, heard = f"{code}.{device}", npus.heard
                await client.call(message(sender, [fault(code, fault_id, OCCUR, chips)]))
                raised = await npus.raised(device, code, after=heard)
                stood = raised.condition_level, raised.verdict, raised.handling
                assert stood == (levels[code], *STANCE[levels[code]]), code
                assert (raised.evidence["sender"], raised.evidence["fault_id"]) == (sender, fault_id)
                await client.call(message(sender, [fault(code, fault_id, RECOVER, chips)]))
                cleared = await npus.cleared(device, code, after=heard)
                assert (cleared.verdict, cleared.why) == (Verdict.ALLOW, "recovered"), code
    assert without_gap(npus.events)


async def test_thousands_of_faults_with_bad_ones_among_them(npus: Npus) -> None:
    """Each accepted fault has its events, each refused message its reason; others are answered meanwhile."""
    npus.sections = ("[public]", "burst = 3", 'refill = "200ms"')
    await npus.start()
    await npus.observed()
    await npus.subscriber.leave()
    before_kib = memory_kib(npus)
    floods = [Flood(client_of=npus, sender=sender) for sender in SENDERS]
    async with asks_meanwhile(npus) as answered:
        began_s = asyncio.get_running_loop().time()
        await asyncio.gather(*(each.run(math.ceil(FLOOD / 2 / NEW / len(SENDERS))) for each in floods))
        took_s = asyncio.get_running_loop().time() - began_s
    accepted = [fault_id for each in floods for fault_id in each.accepted]
    refused = sum((each.refused for each in floods), Counter[str]())
    events = await of_reports(npus)
    print(
        f"\n{2 * len(accepted)} faults in {took_s:.1f} s, refused messages: {dict(refused)},"
        f" memory {before_kib} -> {memory_kib(npus)} KiB, {len(answered)} other calls answered,"
        f" the slowest in {1000 * max(answered):.0f} ms"
    )

    raised = Counter(fault_id for kind, fault_id in events if kind is EventKind.RAISED)
    cleared = Counter(fault_id for kind, fault_id in events if kind is EventKind.CLEARED)
    still = {each.evidence["fault_id"] for each in await open_reports(npus)}
    assert raised == Counter(accepted)
    assert cleared == Counter(accepted) - Counter(still)
    assert still == {fault_id for each in floods for fault_id in each.open}
    assert refused["INVALID_ARGUMENT"] > len(accepted) // NEW // BAD_EVERY - len(SENDERS)
    assert answered


async def test_beyond_the_room_of_a_device_a_message_is_refused_and_the_stricter_fault_still_comes(
    npus: Npus,
) -> None:
    await npus.start()
    await npus.observed()
    async with control(npus) as client:
        for first in range(0, MAX_REPORTED_ON_DEVICE, 64):
            many = [fault(SLOW, f"fault-{number:03}", OCCUR, (3,)) for number in range(first, first + 64)]
            await client.call(message("CCAE", many))
        with pytest.raises(ClientError) as refused:
            await client.call(message("CCAE", [fault(SLOW, "one-more", OCCUR, (3,))]))
        assert (refused.value.status, refused.value.retry_after_s) == ("RESOURCE_EXHAUSTED", None)
        assert refused.value.reason.startswith("npu3 has no room for more, nor is any fault there milder;")
        await client.call(message("CCAE", [fault(BROKEN, "the-worst", OCCUR, (3,))]))
    assert (await npus.raised("npu3", BROKEN)).verdict is Verdict.ISOLATE
    assert len(await open_reports(npus)) == MAX_REPORTED_ON_DEVICE


async def test_a_fault_of_a_silent_sender_expires_with_an_event_that_says_so(npus: Npus) -> None:
    npus.sections = ("[public]", "[public.senders.my-checker]", 'expire_after = "1s"')
    await npus.start()
    await npus.observed()
    async with control(npus) as client:
        await client.call(message("my-checker", [fault(BROKEN, "fault-01", OCCUR, (3,))]))
        await client.call(message("CCAE", [fault(BROKEN, "fault-01", OCCUR, (3,))]))
    expired = await npus.cleared("npu3", BROKEN)
    assert expired.why == "expired: my-checker has not repeated it for 1 s"
    assert [each.evidence["sender"] for each in await open_reports(npus)] == ["CCAE"]


async def test_killed_at_any_moment_the_daemon_keeps_what_it_answered(npus: Npus) -> None:
    npus.sections = ("[public]", 'refill = "10ms"')
    seeded, answered = random.Random(14), set[str]()
    for life in range(KILLS):
        await npus.start()
        await npus.observed()
        still = {each.evidence["fault_id"] for each in await open_reports(npus)}
        assert answered <= still
        answered |= await report_until_killed(npus, life, seeded.randrange(2, 40))
    await npus.start()
    still = {each.evidence["fault_id"] for each in await open_reports(npus)}
    assert answered <= still
    assert len(answered) > KILLS
    assert "differ" not in npus.daemon.log


async def report_until_killed(npus: Npus, life: int, after: int) -> set[str]:
    """The ids of the faults that were answered as being on the disk; it is killed after so many of them."""
    answered = set[str]()
    enough = asyncio.Event()

    async def report() -> None:
        async with control(npus) as client:
            for number in range(100):
                faults = [fault(SLOW, f"fault-{life}-{number}", OCCUR, (number % len(CHIPS),))]
                response = await client.call(message("CCAE", faults))
                if response.durable:
                    answered.update(each.fault_id for each in faults)
                if len(answered) >= after:
                    enough.set()
                await asyncio.sleep(0.002)

    reporting = asyncio.create_task(report())
    async with asyncio.timeout(WAIT_LIMIT_S):
        await enough.wait()
    await npus.kill()
    with pytest.raises(ClientError, match="UNAVAILABLE"):
        await reporting
    return answered


@dataclass(kw_only=True)
class Flood:
    """One sender, as fast as it may. Every few messages it sends one with a bad fault in it first."""

    client_of: Npus
    sender: str
    accepted: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    open: list[str] = field(default_factory=list)

    async def run(self, messages: int) -> None:
        async with control(self.client_of) as client:
            for number in range(messages):
                new = [f"{self.sender}-{number:04}-{each:02}" for each in range(NEW)]
                faults = [fault(SLOW, each, OCCUR, (_chip(each),)) for each in new]
                faults += [fault(SLOW, each, RECOVER, (_chip(each),)) for each in self.open]
                if number % BAD_EVERY == 0:
                    await self.sent(client, [*faults[:-1], fault(NO_CODE, "bad-fault")])
                assert await self.sent(client, faults)
                self.accepted += new
                self.open = new

    async def sent(self, client: AsyncClient, faults: list[pb.PublicFault]) -> bool:
        """False where it is refused for good. Who is too fast waits as the daemon says."""
        while (why := await answer(client, message(self.sender, faults))) is not None:
            self.refused[why.status] += 1
            if why.status == "INVALID_ARGUMENT":
                assert why.reason.startswith(f"faults[{len(faults) - 1}].code: '{NO_CODE}' has no row")
                return False
            await asyncio.sleep(why.retry_after_s or 0)
        return True


async def answer(client: AsyncClient, request: pb.ReportPublicFaultRequest) -> ClientError | None:
    try:
        await client.call(request)
    except ClientError as error:
        return error
    return None


def _chip(fault_id: str) -> int:
    return int(fault_id[-2:]) % len(CHIPS)


@asynccontextmanager
async def asks_meanwhile(npus: Npus) -> AsyncIterator[list[float]]:
    """How many seconds each call of a reader took."""
    took_s: list[float] = []

    async def ask() -> None:
        async with AsyncClient(npus.daemon.socket) as client:
            while True:
                began_s = asyncio.get_running_loop().time()
                await client.call(fault_service_pb2.GetNodeRequest())
                took_s.append(asyncio.get_running_loop().time() - began_s)
                await asyncio.sleep(0.02)

    asking = asyncio.create_task(ask())
    yield took_s
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def of_reports(npus: Npus) -> list[tuple[EventKind, str]]:
    """Kind and fault id of every event that is stored about a reported fault."""
    found = list[tuple[EventKind, str]]()
    async with AsyncClient(npus.daemon.socket) as client:
        page = await client.call(fault_service_pb2.ListEventsRequest(limit=1000))
        while page.events:
            found += [
                (enums.EVENT_KIND_OF[each.kind], each.evidence["fault_id"])
                for each in page.events
                if each.source == "public"
            ]
            request = fault_service_pb2.ListEventsRequest(limit=1000, after_seq=page.next_after_seq)
            page = await client.call(request)
    return found


def memory_kib(npus: Npus) -> int:
    status = Path(f"/proc/{npus.daemon.running.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])
