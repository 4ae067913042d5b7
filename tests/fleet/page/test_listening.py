"""Where the page may be served: without certificates on loopback only, and never with half of them."""

from pathlib import Path

import pytest

from nodeagent.fleet.page.listening import ListenError, PageAddress, PageCertificateFiles, PageCertificates
from tests.api.certificates import Authority

FILE = Path("some.pem")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("9109", "--listen 9109: a host and a port are needed"),
        (":9109", "--listen :9109: a host and a port are needed"),
        ("localhost:", "'' is not a port"),
        ("localhost:65536", "'65536' is not a port"),
        ("localhost:http", "'http' is not a port"),
        ("::1:9109", "write an IPv6 address in brackets"),
    ],
)
def test_what_is_no_address_is_refused_with_an_example(text: str, problem: str) -> None:
    with pytest.raises(ListenError) as refused:
        PageAddress.of(text, None, None, None)
    assert problem in str(refused.value)
    assert "127.0.0.1:9109" in str(refused.value) or "[::1]:9109" in str(refused.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "[::]", "[::ffff:127.0.0.1]"])
def test_other_addresses_than_loopback_need_certificates(host: str) -> None:
    with pytest.raises(ListenError) as refused:
        PageAddress.of(f"{host}:0", None, None, None).listeners()
    assert "is not loopback" in str(refused.value)
    assert "give --listen-cert, --listen-key and --listen-client-ca" in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.3.2.1"])
def test_loopback_needs_none(host: str) -> None:
    listeners = PageAddress.of(f"{host}:0", None, None, None).listeners()
    ports = {listener.getsockname()[1] for listener in listeners}
    for listener in listeners:
        listener.close()
    assert len(ports) == 1
    assert ports != {0}


def test_the_three_files_go_together() -> None:
    with pytest.raises(ListenError) as refused:
        PageAddress.of("localhost:9109", FILE, None, FILE)
    assert str(refused.value).startswith("give --listen-key too: ")


def test_an_address_in_use_is_named() -> None:
    (listener,) = PageAddress.of("127.0.0.1:0", None, None, None).listeners()
    with listener, pytest.raises(ListenError) as refused:
        PageAddress(host="127.0.0.1", port=listener.getsockname()[1]).listeners()
    assert "cannot listen there: Address already in use" in str(refused.value)


def files(authority: Authority, name: str = "page") -> PageCertificateFiles:
    own = authority.issue(name, alternative="DNS:localhost,IP:127.0.0.1")
    return PageCertificateFiles(certificate=own.certificate, key=own.key, client_ca=authority.certificate)


def test_files_that_cannot_be_used_are_named_with_their_option(authority: Authority) -> None:
    good = files(authority)
    other = files(authority, "other")
    empty = authority.folder / "empty.pem"
    empty.write_text("")
    for bad, named in (
        (PageCertificateFiles(certificate=FILE, key=good.key, client_ca=good.client_ca), "--listen-cert"),
        (
            PageCertificateFiles(certificate=good.certificate, key=other.key, client_ca=good.client_ca),
            "--listen-key",
        ),
        (
            PageCertificateFiles(certificate=good.certificate, key=good.key, client_ca=empty),
            "--listen-client-ca",
        ),
    ):
        with pytest.raises(ListenError) as refused:
            PageCertificates(bad)
        assert named in str(refused.value)


def test_changed_files_are_used_and_bad_ones_are_not(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    own = files(authority)
    certificates = PageCertificates(own)
    first = certificates.current()
    assert certificates.current() is first
    fresh = files(authority, "fresh")
    own.certificate.write_bytes(fresh.certificate.read_bytes())
    assert certificates.current() is first
    assert "cannot be used; the last good ones stay in use" in caplog.text
    own.key.write_bytes(fresh.key.read_bytes())
    assert certificates.current() is not first
