"""TCP is open to certificates only, each with the role of its name, and new certificates are taken up."""

import logging
import shutil
from pathlib import Path

import msgspec
import pytest

from nodeagent.api.access import sockets
from nodeagent.api.access.sockets import OutletError
from nodeagent.config.sections import GrpcConfig
from tests.api.access.tcp import CONTROL, READ, REPORT, ROLES, SERVER_NAMES, answer, configured, opened
from tests.api.certificates import Authority, Certificate
from tests.api.stage import Stage
from tests.waiting import until


async def test_what_a_certificate_may_do_is_told_by_its_name(place: Path, authority: Authority) -> None:
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    async with opened(place, configured(authority, server)) as stage:
        reader = authority.issue("scheduler.example.org")
        assert await answer(stage, authority, reader, READ) == "OK"
        assert await answer(stage, authority, reader, CONTROL) == (
            "PERMISSION_DENIED: Quiesce is for operators:"
            ' grpc.roles gives scheduler.example.org the role "reader"'
        )
        operator = authority.issue("operator.example.org")
        assert await answer(stage, authority, operator, CONTROL) == (
            "UNIMPLEMENTED: Quiesce is not served by this version"
        )
        stranger = authority.issue("stranger.example.org")
        assert await answer(stage, authority, stranger, READ) == (
            "PERMISSION_DENIED: certificate stranger.example.org may not read:"
            " grpc.roles gives stranger.example.org no role"
        )


async def test_a_reporter_reads_and_reports_and_does_nothing_else(place: Path, authority: Authority) -> None:
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    async with opened(place, configured(authority, server)) as stage:
        reporter, reader = authority.issue("checker.example.org"), authority.issue("scheduler.example.org")
        assert await answer(stage, authority, reporter, READ) == "OK"
        assert await answer(stage, authority, reporter, REPORT) == (
            "UNIMPLEMENTED: ReportPublicFault is not served by this version"
        )
        assert await answer(stage, authority, reporter, CONTROL) == (
            "PERMISSION_DENIED: Quiesce is for operators:"
            ' grpc.roles gives checker.example.org the role "reporter"'
        )
        assert await answer(stage, authority, reader, REPORT) == (
            "PERMISSION_DENIED: ReportPublicFault is for reporters and operators:"
            ' grpc.roles gives scheduler.example.org the role "reader"'
        )


async def test_an_alternative_name_gives_a_role_as_the_common_name_does(
    place: Path, authority: Authority
) -> None:
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    async with opened(place, configured(authority, server)) as stage:
        own = authority.issue("pod-17", alternative="DNS:operator.example.org")
        assert (await answer(stage, authority, own, CONTROL)).startswith("UNIMPLEMENTED")


async def test_a_refused_name_is_refused_though_any_other_may_read(place: Path, authority: Authority) -> None:
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    roles = {**ROLES, "*": "reader"}
    async with opened(place, configured(authority, server, roles)) as stage:
        banned = authority.issue("banned.example.org", alternative="DNS:operator.example.org")
        assert (await answer(stage, authority, banned, READ)).startswith("PERMISSION_DENIED")
        assert await answer(stage, authority, authority.issue("anybody"), READ) == "OK"


async def test_without_a_certificate_of_the_authority_nobody_gets_in(
    place: Path, authority: Authority
) -> None:
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    other = Authority(authority.folder, "other")
    forged = other.issue("operator.example.org", file_name="forged")
    async with opened(place, configured(authority, server)) as stage:
        assert (await answer(stage, authority, None, READ)).startswith("UNAVAILABLE")
        assert (await answer(stage, authority, forged, READ)).startswith("UNAVAILABLE")


async def test_new_certificates_are_used_from_the_next_connection_on(
    place: Path, authority: Authority
) -> None:
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    reader = authority.issue("scheduler.example.org")
    async with opened(place, configured(authority, server)) as stage:
        assert await answer(stage, authority, reader, READ) == "OK"
        renewed = Authority(authority.folder, "renewed")
        fresh = renewed.issue("node.example.org", file_name="fresh", alternative=SERVER_NAMES)
        shutil.copy(fresh.key, server.key)
        shutil.copy(fresh.certificate, server.certificate)
        assert await answer(stage, renewed, reader, READ) == "OK"
        assert (await answer(stage, authority, reader, READ)).startswith("UNAVAILABLE")


async def test_an_authority_that_is_taken_out_lets_nobody_in_from_the_next_connection_on(
    place: Path, authority: Authority
) -> None:
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    reader = authority.issue("scheduler.example.org")
    renewed = Authority(authority.folder, "renewed")
    fresh = renewed.issue("scheduler.example.org", file_name="fresh")
    admitted = place / "admitted.pem"
    shutil.copy(authority.certificate, admitted)
    async with opened(
        place, msgspec.structs.replace(configured(authority, server), tls_client_ca=str(admitted))
    ) as stage:
        assert await answer(stage, authority, reader, READ) == "OK"
        shutil.copy(renewed.certificate, admitted)
        assert (await answer(stage, authority, reader, READ)).startswith("UNAVAILABLE")
        assert await answer(stage, authority, fresh, READ) == "OK"


async def test_new_certificates_that_do_not_fit_leave_the_old_ones_in_use(
    place: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    reader = authority.issue("scheduler.example.org")
    async with opened(place, configured(authority, server)) as stage:
        server.key.write_text("no key")
        with caplog.at_level(logging.ERROR):
            assert await answer(stage, authority, reader, READ) == "OK"
    assert "the last good ones stay in use" in caplog.text


async def test_a_daemon_does_not_start_with_certificates_that_cannot_work(
    place: Path, authority: Authority
) -> None:
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    another = authority.issue("another.example.org")
    mixed = Certificate(server.certificate, another.key)
    missing = Certificate(place / "missing.pem", server.key)
    assert "cannot be used together" in await _failure(place, configured(authority, mixed))
    assert await _failure(place, configured(authority, missing)) == (
        f"grpc.tls_cert: {missing.certificate}: No such file or directory"
    )


async def test_an_address_that_is_taken_is_told_and_had_as_soon_as_it_is_free(
    place: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sockets, "RETRY_S", 0.01)
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    reader = authority.issue("scheduler.example.org")
    (place / "second").mkdir()
    async with opened(place, configured(authority, server)) as first:
        port = first.server.tcp_port
        address = f"127.0.0.1:{port}"
        second = Stage(
            place / "second", msgspec.structs.replace(configured(authority, server), listen=address)
        )
        await second.open()
        async with second.client() as connected:
            assert [device.name for device in await connected.devices()] == ["node"]
        assert second.server.tcp_port == 0
    await until(lambda: second.server.tcp_port == port)
    assert await answer(second, authority, reader, READ) == "OK"
    await second.close()
    logged = f"no TCP: grpc.listen: cannot listen on {address}: Address already in use; retrying"
    assert [record.message for record in caplog.records].count(logged) == 1


async def test_an_address_whose_network_is_not_up_keeps_no_daemon_from_starting(
    place: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    server = authority.issue("node.example.org", alternative=SERVER_NAMES)
    elsewhere = msgspec.structs.replace(configured(authority, server), listen="192.0.2.1:9443")
    async with opened(place, elsewhere) as stage, stage.client() as connected:
        assert [device.name for device in await connected.devices()] == ["node"]
    assert "cannot listen on 192.0.2.1:9443: Cannot assign requested address" in caplog.text


async def _failure(place: Path, grpc_config: GrpcConfig) -> str:
    stage = Stage(place, grpc_config)
    with pytest.raises(OutletError) as failed:
        await stage.open()
    await stage.ledger.close()
    assert not stage.socket.exists()
    return str(failed.value)
