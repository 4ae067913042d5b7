"""The nodes that are followed, and the address of each: a list in a file, or the addresses of a name.

The list is read again and again. One that cannot be read after the start changes nothing, and is reported
once: a typing error or a name server that is away does not stop the follower.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEFAULT_PORT: Final = 9443
"""As ``[grpc] listen`` is shown in the configuration's own comments."""

NEEDS_CERTIFICATES: Final = "nodes are reached over TCP with certificates; give --ca, --cert, --key"

DNS: Final = "dns:"
READ_EVERY_S: Final = 5.0

_PORTS: Final = range(1, 65536)
_FORM: Final = "a line is ADDRESS or NAME ADDRESS; an address is HOST, HOST:PORT or a socket's absolute path"


_log = logging.getLogger(__name__)


class NodesError(Exception):
    """The nodes cannot be listed. The text names the place, and has a line for each problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One node. ``name`` is the name in the list; ``address`` is HOST:PORT, or the absolute path of a unix
    socket.

    ``certificate_name`` is the name that its certificate must have, "" where that is the host of the address.
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


Listing = Callable[[], Awaitable[tuple[Endpoint, ...]]]
"""Raises ``NodesError``."""


def from_text(text: str, source: str, *, tcp: bool) -> tuple[Endpoint, ...]:
    """The nodes of a list, one a line; ``#`` begins a comment. ``tcp``: there are certificates for it.

    Raises ``NodesError`` with everything that is wrong.
    """
    found: list[Endpoint] = []
    problems: list[str] = []
    lines: dict[str, int] = {}
    for number, fields in _lines(text):
        try:
            endpoint = _endpoint(fields, tcp=tcp)
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
    """A node for each address of a name. Each has its address as its name, and a certificate for the name."""
    hosts = sorted({f"[{each}]" if ":" in each else each for each in addresses})
    return tuple(
        Endpoint(name=f"{host}:{port}", address=f"{host}:{port}", certificate_name=name) for host in hosts
    )


def name_and_port(text: str) -> tuple[str, int]:
    """The name and the port of ``NAME`` or ``NAME:PORT``. Raises ``ValueError``."""
    name, colon, port = text.partition(":")
    if not name:
        raise ValueError("no name after dns:")
    return name, _port(port) if colon else DEFAULT_PORT


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.partition("#")[0].split()
        if fields:
            yield number, fields


def _endpoint(fields: list[str], *, tcp: bool) -> Endpoint:
    if len(fields) > 2:
        raise ValueError(f"{len(fields)} fields; {_FORM}")
    address = fields[-1]
    if "/" in address:
        if not address.startswith("/"):
            raise ValueError(f"{address}: a socket's path must be absolute")
        return Endpoint(name=fields[0], address=address)
    if not tcp:
        raise ValueError(f"{address}: {NEEDS_CERTIFICATES}")
    host, port = _host_and_port(address)
    return Endpoint(name=fields[0] if len(fields) == 2 else host.strip("[]"), address=f"{host}:{port}")


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
        raise ValueError(f"{text!r} is not a port; a port is a number from 1 to 65535")
    return int(text)


def listing_of(given: str, *, tcp: bool) -> Listing:
    """The listing of ``FILE`` or ``dns:NAME``. Raises ``ValueError`` for a wrong name, and for a name without
    certificates.
    """
    if not given.startswith(DNS):
        return _of_file(Path(given), tcp=tcp)
    name, port = name_and_port(given.removeprefix(DNS))
    if not tcp:
        raise ValueError(f"{given}: {NEEDS_CERTIFICATES}")
    return _of_name(name, port)


async def follow_list(
    read: Listing, known: tuple[Endpoint, ...], use: Callable[[tuple[Endpoint, ...]], None]
) -> None:
    """``use`` gets each list that differs from the one before."""
    problem = ""
    while True:
        await asyncio.sleep(READ_EVERY_S)
        try:
            found = await read()
        except NodesError as error:
            if str(error) != problem:
                problem = str(error)
                _log.error("the nodes stay as they are: %s", problem)
            continue
        problem = ""
        if found != known:
            known = found
            use(found)


def _of_file(path: Path, *, tcp: bool) -> Listing:
    async def read() -> tuple[Endpoint, ...]:
        try:
            text = await asyncio.to_thread(path.read_text)
        except (OSError, UnicodeDecodeError) as error:
            raise NodesError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
        return from_text(text, str(path), tcp=tcp)

    return read


def _of_name(name: str, port: int) -> Listing:
    async def read() -> tuple[Endpoint, ...]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise NodesError(f"{DNS}{name}: {error.strerror or error}") from error
        return from_addresses(name, port, (str(place[0]) for *_, place in found))

    return read
