"""What the page's server accepts, from whom, and how much of it: over real connections."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from nodeagent.fleet.page import answers, questions, server
from nodeagent.fleet.page.exchange import HEADERS
from nodeagent.fleet.page.listening import PageAddress
from nodeagent.fleet.state import Contact, NodeState, NodeStates, with_contact
from tests.api import samples
from tests.api.certificates import Authority, Certificate
from tests.api.stage import Stage
from tests.fleet.given import AT
from tests.fleet.page.serving import Site, endpoints, serving
from tests.waiting import until


@pytest.fixture
def node_states(stage: Stage, place: Path) -> NodeStates:
    """One node that answers when it is asked, and one that is away."""
    states = NodeStates()
    here, away = endpoints(place, "nodeagent", "gone")
    states.put(with_contact(NodeState(endpoint=here), Contact.ANSWERS, "", AT))
    states.put(with_contact(NodeState(endpoint=away), Contact.AWAY, "refused", AT))
    return states


@pytest.fixture
async def site(node_states: NodeStates) -> AsyncIterator[Site]:
    async with serving(node_states) as opened:
        yield opened


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/page.css", "text/css; charset=utf-8"),
        ("/page.mjs", "text/javascript; charset=utf-8"),
        ("/model.mjs", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
    ],
)
async def test_the_files_of_the_page(site: Site, path: str, content_type: str) -> None:
    got = await site.get(path)
    assert (got.status, got.headers["Content-Type"]) == (200, content_type)
    assert int(got.headers["Content-Length"]) == len(got.body) > 0
    head = await site.get(path, method="HEAD")
    assert (head.headers["Content-Length"], head.body) == (got.headers["Content-Length"], b"")


@pytest.mark.parametrize(
    "request_line",
    ["GET /", "GET /nothing", "POST /", "GET /why?node=x", "GET /events?x=%ff", "HEAD /node", "BAD"],
)
async def test_every_reply_forbids_what_a_browser_could_do_beyond_the_page(
    site: Site, request_line: str
) -> None:
    got = await site.ask(f"{request_line} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert {name: got.headers[name] for name in HEADERS} == dict(HEADERS)
    policy = got.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "XYZ"])
async def test_it_is_read_only(site: Site, method: str) -> None:
    got = await site.get("/why?node=nodeagent&device=gpu0", method=method)
    assert (got.status, got.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "LOCALHOST", "127.0.0.1:1", "[::1]:9109"])
async def test_names_of_loopback_lead_to_the_page_with_any_port(site: Site, host: str) -> None:
    assert (await site.get("/", host=host)).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9109", "localhost.evil.example", "", "[::2]"])
async def test_a_foreign_name_is_refused_although_it_leads_here(site: Site, host: str) -> None:
    got = await site.get("/events", host=host)
    assert got.status == 421
    assert b"come by 127.0.0.1, [::1], localhost" in got.body


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Sec-Fetch-Site: same-origin", 404),
        ("Sec-Fetch-Site: none", 404),
        ("Sec-Fetch-Site: same-site", 403),
        ("Sec-Fetch-Site: cross-site", 403),
        ("Origin: http://localhost", 404),
        ("Origin: http://evil.example", 403),
        ("Origin: null", 403),
    ],
)
async def test_no_other_site_can_have_a_node_asked(site: Site, header: str, status: int) -> None:
    assert (await site.get("/why?node=none&device=x", header)).status == status


async def test_a_link_of_another_site_leads_to_the_page(site: Site) -> None:
    assert (await site.get("/", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")).status == 200


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
        ("GET //[ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        ("GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET /%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        ("GET /../page.py HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        ("GET /why?" + "a=1&" * 9 + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET /\r\nHost: localhost\r\n\r\n", 505),
        ("\x16\x03\x01 nonsense\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n" + "X: y\r\n" * 101 + "\r\n", 431),
    ],
)
async def test_what_is_no_sound_request_is_refused(site: Site, request_text: str, status: int) -> None:
    assert (await site.ask(request_text.encode())).status == status


async def test_a_head_that_is_too_large_ends_its_connection(site: Site) -> None:
    reader, writer = await site.connect()
    writer.write(b"GET / HTTP/1.1\r\nX: " + b"y" * (2 * server.MAX_HEAD_BYTES))
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    writer.close()
    assert (await site.get("/")).status == 200


async def test_a_request_that_does_not_arrive_ends_its_connection(
    node_states: NodeStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "ARRIVE_LIMIT_S", 0.05)
    async with serving(node_states) as site:
        reader, writer = await site.connect()
        writer.write(b"GET / HTTP/1.1\r\n")
        assert await reader.read() == b""
        writer.close()


async def test_the_stream_has_each_change(site: Site, node_states: NodeStates) -> None:
    async with site.stream() as stream:
        assert b"Content-Type: text/event-stream" in await stream.head()
        first_id, kind, data = await stream.event()
        assert kind == "all"
        assert [(node["name"], node["contact"]) for node in data["nodes"]] == [
            ("nodeagent", "answers"),
            ("gone", "away"),
        ]
        away = node_states.states["gone"]
        node_states.put(with_contact(away, Contact.REFUSES, "no role", AT))
        _, kind, data = await stream.event()
    assert (kind, [node["reason"] for node in data["nodes"]]) == ("changes", ["no role"])
    async with site.stream(f"Last-Event-ID: {first_id}") as stream:
        await stream.head()
        assert (await stream.event())[1:] == ("changes", {**data, "at": pytest.approx(data["at"], abs=1e6)})


async def test_a_reader_that_does_not_read_is_disconnected_and_reported(
    node_states: NodeStates, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "READ_LIMIT_S", 0.2)
    monkeypatch.setattr("nodeagent.fleet.page.changes.EVERY_S", 0.001)
    async with serving(node_states) as site:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", site.port))
        slow.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        reason = "x" * 500

        def is_reported() -> bool:
            nonlocal reason
            reason = reason[1:] + reason[:1] + "y"
            away = node_states.states["gone"]
            node_states.put(with_contact(away, Contact.AWAY, reason, AT))
            return "127.0.0.1 read nothing for 0.2 s and is disconnected" in caplog.text

        async with site.stream() as quick:
            await quick.head()
            await quick.event()
            await until(is_reported, "the report")
            assert (await quick.event())[1] == "changes"
        slow.close()


async def test_so_many_pages_may_be_open_and_not_one_more(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MAX_STREAMS", 1)
    async with site.stream() as stream:
        await stream.head()
        await stream.event()
        refused = await site.get("/events")
        assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
        assert b"1 pages are open already" in refused.body
        assert (await site.get("/", method="HEAD")).status == 200
        await stream.close()
        async with site.stream() as another:
            assert b" 200 " in await another.head()


async def test_connections_that_send_nothing_do_not_keep_others_out(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 4)
    async with site.stream() as stream:
        await stream.head()
        await stream.event()
        idle = [await site.connect() for _ in range(10)]
        assert (await site.get("/")).status == 200
        async with site.stream() as another:
            await another.head()
        for _, writer in idle:
            writer.close()


async def test_why_is_asked_of_the_node(site: Site, stage: Stage) -> None:
    await stage.commit(samples.event())
    got = await site.get("/why?node=nodeagent&device=gpu0")
    assert (got.status, got.json["lines"]) == (200, ["gpu0 of 2"])


@pytest.mark.parametrize(
    ("query", "status", "error"),
    [
        ("node=nodeagent&device=gpu9", 404, "device: 'gpu9' is not known; there are: node"),
        ("node=nodeagent", 400, "name a device"),
        ("node=nodeagent&device=" + "x" * 600, 400, "name a device"),
        ("node=gone&device=gpu0", 502, "the node gives no answer: UNAVAILABLE"),
        ("node=other&device=gpu0", 404, "no such node is followed"),
        ("device=gpu0", 404, "no such node is followed"),
        ("node=gone&node=nodeagent&device=gpu0", 404, "no such node is followed"),
    ],
)
async def test_why_there_is_no_answer_is_reported(site: Site, query: str, status: int, error: str) -> None:
    got = await site.get(f"/why?{query}")
    assert (got.status, got.json["error"][: len(error)]) == (status, error)


async def test_a_node_that_does_not_answer_takes_its_time_limit_and_no_more(
    node_states: NodeStates, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "LIMIT_S", 0.2)
    monkeypatch.setattr(questions, "MAX_AT_ONCE", 1)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(place / "gone.sock"))
        silent.listen()
        async with serving(node_states) as site:
            both = await asyncio.gather(*(site.get("/why?node=gone&device=gpu0") for _ in range(2)))
    assert sorted(got.status for got in both) == [503, 504]
    assert {got.json["error"] for got in both} == {
        "the node did not answer within 0.2 s",
        "1 questions are under way already; ask again",
    }


async def test_a_nodes_devices_are_those_that_are_known(site: Site) -> None:
    got = await site.get("/node?node=gone")
    assert (got.json["contact"], got.json["devices"], got.json["heard_at"]) == ("away", [], None)
    assert got.json["address"].endswith("gone.sock")


def client(authority: Authority, own: Certificate | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.certificate)
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return context


@pytest.fixture
def guarded(authority: Authority) -> PageAddress:
    own = authority.issue("page", alternative="DNS:localhost,IP:127.0.0.1")
    return PageAddress.of("127.0.0.1:0", own.certificate, own.key, authority.certificate)


async def test_with_a_certificate_of_the_authority_the_page_comes_by_any_name(
    node_states: NodeStates, authority: Authority, guarded: PageAddress, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    own = authority.issue("oncall.example.org")
    async with serving(node_states, guarded, client(authority, own)) as site:
        assert site.url.startswith("https://127.0.0.1:")
        assert (await site.get("/", host="fleet.example.org")).status == 200
        async with site.stream() as stream:
            await stream.head()
            assert (await stream.event())[1] == "all"
    opened = "page: opened by oncall.example.org at 127.0.0.1"
    assert [record.message for record in caplog.records] == [opened]


async def test_without_a_certificate_of_the_authority_nothing_comes(
    node_states: NodeStates,
    authority: Authority,
    guarded: PageAddress,
    place: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    (place / "other").mkdir()
    stranger = Authority(place / "other").issue("oncall.example.org")
    async with serving(node_states, guarded, None) as site:
        for context in (client(authority, None), client(authority, stranger), None):
            assert b"HTTP" not in await _what_comes(site.port, context)
    reasons = ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "CERTIFICATE_VERIFY_FAILED", "HTTP_REQUEST")
    refused = [f"no TLS with 127.0.0.1: {reason}" for reason in reasons]
    assert [record.message.removeprefix("page: ") for record in caplog.records] == refused


async def _what_comes(port: int, context: ssl.SSLContext | None) -> bytes:
    """TLS 1.3 refuses a client only once its side of the handshake is done."""
    with suppress(ssl.SSLError, ConnectionResetError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return await reader.read()
        finally:
            writer.transport.abort()
    return b""
