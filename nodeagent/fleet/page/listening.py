"""Where the page is served, and to whom: on loopback to every user of the machine, at any other address only
to those with a certificate of a given authority.

Certificates are read again once their files have changed. Files that do not fit together at that moment are
reported, and the last good ones are used.
"""

import ipaddress
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodeagent.system.last_good import LastGood, Stamp, stamp_of
from nodeagent.system.pem_files import PemError, read_each, use_authorities, use_chain

BACKLOG: Final = 64

_OPTIONS: Final = ("--listen-cert", "--listen-key", "--listen-client-ca")


class ListenError(Exception):
    """The page cannot be served so; the text names the option and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCertificateFiles:
    """PEM files: the page's own chain, its key, and the authorities whose clients are admitted."""

    certificate: Path
    key: Path
    client_ca: Path

    def stamp(self) -> Stamp:
        """Whether any was changed or replaced. Raises ``OSError``."""
        return stamp_of(self.certificate, self.key, self.client_ca)

    def context(self) -> ssl.SSLContext:
        """TLS 1.2 or newer; a client without a certificate of the authorities is refused. Raises
        ``ListenError``.
        """
        paths = (self.certificate, self.key, self.client_ca)
        certificate, key, client_ca = named = tuple(zip(_OPTIONS, paths, strict=True))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            read_each(*named)
            use_chain(context, certificate, key)
            use_authorities(context, client_ca)
        except PemError as error:
            raise ListenError(str(error)) from error
        return context


class PageCertificates(LastGood[ssl.SSLContext]):
    """What is good now. Raises ``ListenError`` where the files are not good at the start."""

    def __init__(self, files: PageCertificateFiles) -> None:
        super().__init__(
            "certificates of the page", stamp=files.stamp, make=files.context, unusable=ListenError
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAddress:
    """``HOST:PORT`` as it was given. ``host`` has no brackets. Without certificates it must be loopback."""

    host: str
    port: int
    certificates: PageCertificateFiles | None = None

    @classmethod
    def of(
        cls, text: str, certificate: Path | None, key: Path | None, client_ca: Path | None
    ) -> "PageAddress":
        """Raises ``ListenError``. A name is looked up only when it is listened on."""
        host, port = _host_and_port(text)
        if certificate is None and key is None and client_ca is None:
            return cls(host=host, port=port)
        if certificate is None or key is None or client_ca is None:
            missing = [
                option
                for option, path in zip(_OPTIONS, (certificate, key, client_ca), strict=True)
                if path is None
            ]
            raise ListenError(f"give {' and '.join(missing)} too: {', '.join(_OPTIONS)} go together")
        files = PageCertificateFiles(certificate=certificate, key=key, client_ca=client_ca)
        return cls(host=host, port=port, certificates=files)

    def listeners(self) -> list[socket.socket]:
        """A listening socket for each address that the host has. Raises ``ListenError``."""
        listening: list[socket.socket] = []
        shown = f"--listen {self.shown(self.port)}"
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            if self.certificates is None:
                _check_loopback(shown, [str(place[0]) for *_, place in found])
            for family, kind, protocol, _, place in found:
                listening.append(socket.socket(family, kind | socket.SOCK_NONBLOCK, protocol))
                _listen(listening[-1], place if self.port or not listening[1:] else _same(listening, place))
        except OSError as error:
            for each in listening:
                each.close()
            raise ListenError(f"{shown}: cannot listen there: {error.strerror or error}") from error
        return listening

    def url(self, port: int) -> str:
        return f"{'http' if self.certificates is None else 'https'}://{self.shown(port)}/"

    def shown(self, port: int) -> str:
        return f"[{self.host}]:{port}" if ":" in self.host else f"{self.host}:{port}"


def _host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    example = "write HOST:PORT, such as 127.0.0.1:9109"
    if not colon or not host:
        raise ListenError(f"--listen {text}: a host and a port are needed; {example}")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ListenError(f"--listen {text}: write an IPv6 address in brackets, such as [::1]:9109")
    if not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise ListenError(f"--listen {text}: {port!r} is not a port; {example}")
    return host.strip("[]"), int(port)


def _check_loopback(shown: str, addresses: list[str]) -> None:
    """Raises ``ListenError``. Only the addresses count: a name may have any."""
    for address in addresses:
        if not ipaddress.ip_address(address.partition("%")[0]).is_loopback:
            raise ListenError(
                f"{shown}: {address} is not loopback, and the page is served to other machines only with"
                " certificates of both sides; give --listen-cert, --listen-key and --listen-client-ca, or"
                " listen on 127.0.0.1"
            )


def _same(listening: list[socket.socket], place: Any) -> Any:
    """The place with the port that the first socket got."""
    return (place[0], listening[0].getsockname()[1], *place[2:])


def _listen(listener: socket.socket, place: Any) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if listener.family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind(place)
    listener.listen(BACKLOG)
