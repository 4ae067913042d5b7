"""Whose word ends what a client reported: a real daemon, and clients with certificates of their own."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import grpc
import pytest

from nodeagent.client import AsyncClient, ClientError
from nodeagent.messages import enums
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from tests.api.access.tcp import SERVER_NAMES
from tests.api.certificates import Authority, Certificate
from tests.harness.daemon import free_port
from tests.stories.npus import Npus, eight_npus
from tests.stories.public_faults import BROKEN, RECOVER, control, fault, message

A, B = "online-a.example.org", "other-b.example.org"
SENDER, ID = "fd-online", "real-fault-1"


class Reporters:
    """Of one node. ``port`` is where it listens for them."""

    def __init__(self, npus: Npus, authority: Authority, certificates: Mapping[str, Certificate]) -> None:
        self.npus = npus
        self.port = free_port()
        self._authority = authority
        self._certificates = certificates

    async def start(self, *sections: str) -> None:
        server = self._certificates["server"]
        self.npus.sections = (
            "[grpc]",
            f'listen = "127.0.0.1:{self.port}"',
            f'tls_cert = "{server.certificate}"',
            f'tls_key = "{server.key}"',
            f'tls_client_ca = "{self._authority.certificate}"',
            f'roles = {{ "{A}" = "reporter", "{B}" = "reporter" }}',
            *sections,
        )
        await self.npus.start()
        await self.npus.observed()

    async def say(self, name: str, *faults: pb.PublicFault, sender: str = SENDER) -> str:
        """What became of the fault, or why it was refused."""
        own = self._certificates[name]
        credentials = grpc.ssl_channel_credentials(
            self._authority.certificate.read_bytes(), own.key.read_bytes(), own.certificate.read_bytes()
        )
        async with AsyncClient(f"127.0.0.1:{self.port}", credentials) as client:
            return await outcome(client, message(sender, faults))

    async def verdict(self, device: str) -> str:
        return str((await self.npus.devices())[device].verdict)


async def outcome(client: AsyncClient, request: pb.ReportPublicFaultRequest) -> str:
    try:
        answer: pb.ReportPublicFaultResponse = await client.call(request)
    except ClientError as error:
        return f"{error.status}: {error.reason}"
    words = enums.NAMES["PublicFaultOutcome"]
    return ", ".join(str(words[each.outcome]) for each in answer.results)


@pytest.fixture
async def reporters(tmp_path: Path) -> AsyncIterator[Reporters]:
    authority = Authority(tmp_path)
    certificates = {name: authority.issue(name) for name in (A, B)}
    certificates["server"] = authority.issue("node.example.org", alternative=SERVER_NAMES)
    async with eight_npus(tmp_path) as npus:
        npus.tables = (*npus.tables, "public.toml")
        yield Reporters(npus, authority, certificates)


def occurs(chip: int = 5) -> pb.PublicFault:
    return fault(BROKEN, ID, chips=(chip,))


def over(seconds: int | None = None) -> pb.PublicFault:
    """Dated when it began, or at this time."""
    given = fault(BROKEN, ID, RECOVER, (5,))
    if seconds is not None:
        given.began_at.FromSeconds(seconds)
    return given


async def test_no_other_client_ends_or_hides_a_fault_and_no_date_does(reporters: Reporters) -> None:
    await reporters.start()
    assert await reporters.say(A, occurs()) == "taken"
    assert await reporters.verdict("npu5") == "ISOLATE"

    ahead = await reporters.say(B, over(9_999_999_999))
    assert ahead.startswith("INVALID_ARGUMENT: faults[0].began_at: 2286-11-20T17:46:39Z is ")
    denied = await reporters.say(B, over())
    assert denied.startswith(
        f"PERMISSION_DENIED: faults[0].fault_id: {ID} of {SENDER} was opened by certificate:{A},"
        f" not by certificate:{B}; only the caller that opened it, or an operator, can end it"
    )
    assert await reporters.verdict("npu5") == "ISOLATE"
    assert await reporters.say(A, over()) == "closed"
    assert await reporters.verdict("npu5") == "ALLOW"


async def test_a_recovery_before_its_fault_hides_only_its_own_client_s(reporters: Reporters) -> None:
    await reporters.start()
    assert await reporters.say(B, over()) == "not_open"
    assert await reporters.say(B, occurs()) == "outdated"
    assert await reporters.say(A, occurs()) == "taken"
    assert await reporters.verdict("npu5") == "ISOLATE"


async def test_whose_a_fault_is_outlasts_kill_9(reporters: Reporters) -> None:
    await reporters.start()
    assert await reporters.say(A, occurs()) == "taken"
    await reporters.npus.kill()
    await reporters.start()
    assert (await reporters.say(B, over())).startswith("PERMISSION_DENIED")
    assert await reporters.say(A, occurs()) == "repeated"
    assert await reporters.say(A, over()) == "closed"


async def test_an_operator_ends_all_and_clients_that_share_a_kept_name_each_others(
    reporters: Reporters,
) -> None:
    await reporters.start()
    assert await reporters.say(A, occurs()) == "taken"
    async with control(reporters.npus) as client:
        assert await outcome(client, message(SENDER, [over()])) == "closed"
    assert await reporters.verdict("npu5") == "ALLOW"

    await reporters.npus.stop()
    kept = ("[public.senders.online]", f'certificates = ["{A}", "{B}"]')
    await reporters.start("[public]", *kept)
    assert await reporters.say(A, occurs(), sender="online") == "taken"
    assert await reporters.say(B, occurs(), sender="online") == "repeated"
    assert await reporters.say(B, over(), sender="online") == "closed"


async def test_a_client_reports_under_the_name_of_its_certificate(reporters: Reporters) -> None:
    await reporters.start()
    assert await reporters.say(A, occurs(), sender=A) == "taken"
    assert (await reporters.say(B, occurs(), sender=A)).startswith(
        f"INVALID_ARGUMENT: sender: '{A}': must be one of CCAE,"
    )
    named = pb.PublicFault(
        code="SITE_NCCL_TEST",
        assertion=types_pb2.ASSERTION_OCCUR,
        influence=[pb.PublicFaultInfluence(devices=["npu2"])],
    )
    assert await reporters.say(A, named, sender=A) == "taken"
    evidence = [each.evidence for each in (await reporters.npus.snapshot()).conditions]
    assert [each["reported_by"] for each in evidence] == [f"certificate:{A}"] * 2
