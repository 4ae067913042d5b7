"""What goes over the wire, and what each answer of a receiver means: real connections on loopback."""

import base64
import json
import socket
import ssl
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from nodeagent.export.cloudevents import CloudEventsDestination
from nodeagent.export.connection import (
    HttpConnection,
    SetupError,
    TlsFiles,
    checked_url,
    http_url,
    read_headers,
)
from nodeagent.export.delivery import Destination
from nodeagent.export.otlp import OtlpDestination
from nodeagent.export.retries import SendOutcome, SendResult
from nodeagent.export.signatures import read_secret
from nodeagent.export.syslog_connection import SyslogDestination, syslog_url
from tests.api.certificates import Authority
from tests.export import given, receivers
from tests.export.receivers import CloudEventsReceiver, Mood, OtlpReceiver, SyslogReceiver


def sent(destination: Destination, *numbers: int) -> SendResult:
    """What becomes of records with these numbers, sent together."""
    with closing(destination):
        return destination.send(given.numbered(*numbers))


NO_TLS = TlsFiles(None, None, None)
SECRETS = ["whsec_" + base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2)]


def cloudevents(url: str, *, secrets: tuple[bytes, ...] = (), most: int = 1) -> CloudEventsDestination:
    return CloudEventsDestination(
        http_url(url, NO_TLS), tls=NO_TLS, headers={}, secrets=secrets, timeout_s=5.0, most=most
    )


def otlp(url: str, timeout_s: float = 5.0, *, gzip: bool = False) -> OtlpDestination:
    return OtlpDestination(http_url(url, NO_TLS), tls=NO_TLS, headers={}, timeout_s=timeout_s, gzip=gzip)


def syslog(url: str, tls: TlsFiles = NO_TLS, timeout_s: float = 5.0) -> SyslogDestination:
    return SyslogDestination(
        syslog_url(url, tls), tls=tls, facility=3, data_id="nodeagent@0", timeout_s=timeout_s
    )


@pytest.mark.parametrize("number", [0, 1])
def test_a_receiver_with_either_secret_takes_what_is_signed_with_both(tmp_path: Path, number: int) -> None:
    secrets = []
    for place, text in enumerate(SECRETS):
        (tmp_path / str(place)).write_text(text + "\n")
        secrets.append(read_secret(tmp_path / str(place)))
    with receivers.http(CloudEventsReceiver(receivers.always, SECRETS[number])) as receiver:
        assert sent(cloudevents(receiver.url, secrets=tuple(secrets)), 7).outcome is SendOutcome.TAKEN

    assert receiver.taken == [f"{given.STORE.uuid}:2:7"]
    assert receiver.headers["webhook-id"] == receiver.taken[0]


@pytest.mark.parametrize(("most", "content_type"), [(1, "cloudevents+json"), (8, "cloudevents-batch+json")])
def test_one_event_is_structured_and_several_are_a_batch(most: int, content_type: str) -> None:
    with receivers.http(CloudEventsReceiver(receivers.always, "")) as receiver:
        assert sent(cloudevents(receiver.url, most=most), 7).outcome is SendOutcome.TAKEN

    assert receiver.headers["Content-Type"] == f"application/{content_type}; charset=UTF-8"


def test_the_receivers_wish_to_be_left_alone_is_passed_on() -> None:
    with receivers.http(CloudEventsReceiver(lambda: Mood.FAILS, "")) as receiver:
        receiver.retry_after = "17"
        result = sent(cloudevents(receiver.url), 1)

    assert (result.outcome, result.retry_after_s) == (SendOutcome.FAILED, 17.0)


def test_a_kept_connection_that_the_receiver_has_closed_is_replaced() -> None:
    moods = iter([Mood.TAKES, Mood.HANGS_UP, Mood.TAKES])
    receiver = CloudEventsReceiver(lambda: next(moods), "")
    with receivers.http(receiver), closing(cloudevents(receiver.url)) as destination:
        results = [destination.send(given.numbered(seq)).outcome for seq in (1, 2)]

    assert results == [SendOutcome.TAKEN, SendOutcome.TAKEN]
    assert receiver.requests == 3


def test_opentelemetry_goes_to_the_path_of_logs_and_compressed_where_wanted() -> None:
    with receivers.http(OtlpReceiver(receivers.always)) as receiver:
        assert sent(otlp(receiver.url, gzip=True), 1, 2).outcome is SendOutcome.TAKEN

    assert receiver.path == "/v1/logs"
    assert receiver.headers["Content-Encoding"] == "gzip"
    assert len(receiver.taken) == 2


class Partial(OtlpReceiver):
    def answer(self) -> bytes:
        response = ExportLogsServiceResponse()
        response.partial_success.rejected_log_records = 1
        response.partial_success.error_message = "too old"
        return response.SerializeToString()


def test_a_partial_success_of_opentelemetry_is_a_rejection() -> None:
    with receivers.http(Partial(receivers.always)) as receiver:
        result = sent(otlp(receiver.url), 1, 2)

    assert (result.outcome, result.reason) == (SendOutcome.REJECTED, "1 records rejected: too old")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(302, SendOutcome.MISCONFIGURED), (400, SendOutcome.REJECTED), (500, SendOutcome.FAILED)],
)
def test_what_the_exporter_of_opentelemetry_hides_is_seen(status: int, outcome: SendOutcome) -> None:
    with receivers.http(OtlpReceiver(receivers.always)) as receiver:
        receiver.status = lambda _body: status
        assert sent(otlp(receiver.url), 1).outcome is outcome


def test_no_receiver_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ended:
        address = f"127.0.0.1:{ended.getsockname()[1]}"
    results = [
        sent(cloudevents(f"http://{address}"), 1),
        sent(otlp(f"http://{address}", timeout_s=0.3), 1),
        sent(syslog(f"tcp://{address}"), 1),
    ]

    assert [each.outcome for each in results] == [SendOutcome.FAILED] * 3
    assert all("refused" in each.reason for each in results)


@pytest.mark.parametrize(
    ("mood", "outcome", "taken"),
    [
        (Mood.TAKES, SendOutcome.TAKEN, 40),
        (Mood.FAILS, SendOutcome.FAILED, 0),
        (Mood.HANGS_UP, SendOutcome.FAILED, 0),
        (Mood.FORGETS, SendOutcome.FAILED, 40),
    ],
)
def test_syslog_is_taken_once_the_receiver_has_read_all(mood: Mood, outcome: SendOutcome, taken: int) -> None:
    """The groups fit into the socket's buffer: without the wait for the end each would pass for taken."""
    with receivers.syslog(SyslogReceiver(lambda: mood)) as receiver:
        assert sent(syslog(receiver.url), *range(1, 41)).outcome is outcome

        assert len(receiver.taken) == taken


def test_a_syslog_receiver_whose_end_comes_before_ours_has_taken_nothing() -> None:
    """Its kernel acknowledges what it never reads; at first a receiver that leaves looks the same."""
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.MonkeyPatch.context() as patch:
        connect, held = socket.create_connection, list[socket.socket]()

        def connected(*arguments: Any) -> socket.socket:
            connection = connect(*arguments)
            held.append(listening.accept()[0])
            held[0].shutdown(socket.SHUT_WR)
            return connection

        patch.setattr(socket, "create_connection", connected)
        result = sent(syslog(f"tcp://127.0.0.1:{listening.getsockname()[1]}"), 1)
        held[0].close()

    assert result.outcome is SendOutcome.FAILED
    assert result.reason == "connection: the receiver ended it before it had read all"


def test_a_syslog_receiver_that_reads_nothing_has_taken_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        result = sent(syslog(url, timeout_s=0.2), 1)

    assert (result.outcome, result.reason) == (SendOutcome.FAILED, "no answer within 0.2 s")


def tls_server(authority: Authority) -> ssl.SSLContext:
    issued = authority.issue("localhost", alternative="DNS:localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.certificate, issued.key)
    return context


@pytest.mark.parametrize(
    ("reads", "answers", "outcome"),
    [(True, True, SendOutcome.TAKEN), (True, False, SendOutcome.TAKEN), (False, False, SendOutcome.FAILED)],
)
def test_syslog_over_tls_is_taken_once_the_receiver_has_read_all(
    authority: Authority, reads: bool, answers: bool, outcome: SendOutcome
) -> None:
    """Whether it answers by ``close_notify`` or only ends the connection."""
    context, read = tls_server(authority), list[bytes]()

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with context.wrap_socket(connection, server_side=True) as encrypted:
            encrypted.recv(1)
            while reads and (chunk := encrypted.recv(65536)):
                read.append(chunk)
            if answers:
                encrypted.unwrap()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        url = f"tls://localhost:{listening.getsockname()[1]}"
        tls = TlsFiles(authority.certificate, None, None)
        result = sent(syslog(url, tls), *range(1, 65))
        thread.join()

    assert result.outcome is outcome
    assert b"".join(read).count(b'seq="') == (64 if reads else 0)


def test_a_receiver_with_a_certificate_of_others_gets_nothing(authority: Authority) -> None:
    context = tls_server(authority)

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with pytest.raises(OSError), context.wrap_socket(connection, server_side=True) as encrypted:
            encrypted.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        result = sent(syslog(f"tls://localhost:{listening.getsockname()[1]}"), 1)
        thread.join()

    assert result.outcome is SendOutcome.MISCONFIGURED
    assert "certificate" in result.reason


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is no address of a receiver: http://HOST[:PORT] or https://HOST[:PORT] is needed"),
        ("ftp://host", "'ftp://host' is no address"),
        ("http://host:99999", "'http://host:99999' is no address"),
        ("http://", "'http://' is no address"),
        ("http://host..example", "'http://host..example' is no address"),
        (f"http://{'a' * 64}.example", "'http://aaaa"),
        ("http://a b/", "'http://a b/' holds a blank or a character that is not ASCII"),
        ("http://host/ü", "'http://host/ü' holds a blank"),
        ("http://host/\nx", r"'http://host/\nx' holds a blank"),
        ("https://user:secret@host", "the address holds a password"),
        ("https://user:secret @host", "the address holds a password"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(text: str, problem: str) -> None:
    with pytest.raises(SetupError) as refused:
        http_url(text, NO_TLS)

    assert str(refused.value).startswith(problem)
    assert "secret" not in str(refused.value)


def test_certificates_for_a_connection_that_is_not_encrypted_are_refused() -> None:
    with pytest.raises(SetupError, match="is not encrypted"):
        syslog_url("tcp://host", TlsFiles(Path("ca.pem"), None, None))


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_c2hvcnQ=", "c2hvcnQ=", "whsec_***", "c2hv" * 11])
def test_a_secret_that_is_none_is_refused_and_not_quoted(tmp_path: Path, text: str) -> None:
    (tmp_path / "secret").write_text(text)

    with pytest.raises(SetupError) as refused:
        read_secret(tmp_path / "secret")

    assert str(refused.value).endswith("whsec_ and the base64 form of 24 to 64 random bytes are needed")


def test_headers_are_read_from_a_file_and_an_error_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_text("# of the tenant\n\nAuthorization: Bearer a:b\nX-Scope: ops\n")
    assert read_headers(file) == {"Authorization": "Bearer a:b", "X-Scope": "ops"}

    for line, problem in (
        ("secret", "'Name: value' is needed, in ASCII"),
        ("X-Ü: secret", "'Name: value' is needed, in ASCII"),
        ("X-Scope: secret ü", "'Name: value' is needed, in ASCII"),
        ("content-length: 3", "content-length is set by the exporter itself"),
    ):
        file.write_text(f"Authorization: Bearer a\n{line}\n")
        with pytest.raises(SetupError) as refused:
            read_headers(file)
        assert str(refused.value) == f"--headers {file}, line 2: {problem}"


def test_an_ipv6_address_without_a_port_is_that_of_the_scheme() -> None:
    destination = HttpConnection(http_url("http://[::1]/x", NO_TLS), NO_TLS, 1.0)

    assert destination.address == ("::1", 80)


def test_the_body_that_is_signed_is_json_as_it_is_sent() -> None:
    receiver = CloudEventsReceiver(receivers.always, "")
    with receivers.http(receiver), closing(cloudevents(receiver.url)) as destination:
        destination.send([given.records()[1]])

    (event,) = receiver.records
    assert event == json.loads(json.dumps(event))
    assert event["data"]["why"] == given.HOSTILE.why


def test_schemes_of_others_are_named() -> None:
    with pytest.raises(SetupError, match=r"tcp://HOST\[:PORT\] or tls://HOST\[:PORT\] is needed"):
        checked_url("udp://host", {"tcp": 601, "tls": 6514})
