"""Which nodes are followed, and where each answers: the text of a list, or the addresses of a name.

It reads no file and asks no name server: ``discovery`` does.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

DEFAULT_PORT: Final = 9443
"""As ``[grpc] listen`` is shown in the configuration's own comments."""

NEEDS_CERTIFICATES: Final = "nodes are reached over TCP with certificates; give --ca, --cert, --key"

_PORTS: Final = range(1, 65536)
_FORM: Final = "a line is ADDRESS or NAME ADDRESS; an address is HOST, HOST:PORT or a socket's absolute path"


class NodesError(Exception):
    """The nodes cannot be listed. The text names the place, and has a line for each thing wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One node. ``name`` is ours for it; ``address`` is HOST:PORT, or the absolute path of a unix socket.

    ``certificate_name`` is what its certificate must be for, "" where that is the address's own host.
    """

    name: str
    address: str
    certificate_name: str = ""

    @property
    def is_local(self) -> bool:
        return self.address.startswith("/")

    @property
    def host(self) -> str:
        """ "" of a unix socket."""
        return "" if self.is_local else self.address.rpartition(":")[0]


def from_text(text: str, source: str, *, tcp: bool) -> tuple[Endpoint, ...]:
    """The nodes of a list, one a line; ``#`` begins a comment. ``tcp``: there are certificates for it.

    Raises ``NodesError`` with everything that is wrong.
    """
    found: list[Endpoint] = []
    problems: list[str] = []
    lines: dict[str, int] = {}
    for number, words in _lines(text):
        try:
            endpoint = _endpoint(words, tcp=tcp)
        except ValueError as error:
            problems.append(f"{source}:{number}: {error}")
            continue
        for what, value in (("the name", endpoint.name), ("the address", endpoint.address)):
            first = lines.setdefault(f"{what} {value}", number)
            if first != number:
                problems.append(
                    f"{source}:{number}: {what} {value} is that of line {first} too; remove one of them"
                )
        found.append(endpoint)
    if not found and not problems:
        problems.append(f"{source}: no node in it; {_FORM}")
    if problems:
        raise NodesError("\n".join(problems))
    return tuple(found)


def from_addresses(name: str, port: int, addresses: Iterable[str]) -> tuple[Endpoint, ...]:
    """A node for each address that a name has: each is called as its address, and has a certificate for the
    name.
    """
    hosts = sorted({f"[{each}]" if ":" in each else each for each in addresses})
    return tuple(
        Endpoint(name=f"{host}:{port}", address=f"{host}:{port}", certificate_name=name) for host in hosts
    )


def name_and_port(text: str) -> tuple[str, int]:
    """The name and the port of ``NAME`` or ``NAME:PORT``. Raises ``ValueError``."""
    name, colon, port = text.partition(":")
    if not name:
        raise ValueError("no name behind dns:")
    return name, _port(port) if colon else DEFAULT_PORT


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            yield number, words


def _endpoint(words: list[str], *, tcp: bool) -> Endpoint:
    if len(words) > 2:
        raise ValueError(f"{len(words)} words; {_FORM}")
    address = words[-1]
    if "/" in address:
        if not address.startswith("/"):
            raise ValueError(f"{address}: a socket's path must be absolute")
        return Endpoint(name=words[0], address=address)
    if not tcp:
        raise ValueError(f"{address}: {NEEDS_CERTIFICATES}")
    host, port = _host_and_port(address)
    return Endpoint(name=words[0] if len(words) == 2 else host.strip("[]"), address=f"{host}:{port}")


def _host_and_port(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    if not host:
        raise ValueError(f"{address}: no host; {_FORM}")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f"{address}: write an IPv6 address in brackets, as in [{address}]:{DEFAULT_PORT}")
    return host, _port(port)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) in _PORTS):
        raise ValueError(f"{text!r} is no port; a port is a number from 1 to 65535")
    return int(text)
