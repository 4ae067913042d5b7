"""Listeners at TCP addresses that cannot be bound yet: logged once, and tried again until they are.

A daemon that starts before its network is better without such a listener than not there. What cannot work
at all, such as a certificate without its key, is no matter of time and none of this.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final

from nodeagent.api.access.sockets import OutletError

RETRY_S = 2.0
BACKLOG: Final = 128

_EVERY_ADDRESS: Final = "::"
_PORTS: Final = 65536

_log = logging.getLogger(__name__)


class AddressError(OutletError):
    """Nobody can listen at this address now: it is another's, or its network is not up yet."""


async def open_or_keep_trying(
    listen: Callable[[], Awaitable[None]], consequence: str
) -> asyncio.Task[None] | None:
    """Listen; where the address cannot be bound, log it and return the task that keeps trying."""
    try:
        await listen()
    except AddressError as error:
        _log.error("%s: %s; retrying", consequence, error)
        return asyncio.create_task(_keep_trying(listen, consequence, str(error)))
    return None


async def _keep_trying(listen: Callable[[], Awaitable[None]], consequence: str, reason: str) -> None:
    while True:
        await asyncio.sleep(RETRY_S)
        try:
            await listen()
        except AddressError as error:
            if str(error) != reason:
                reason = str(error)
                _log.error("%s: %s; retrying", consequence, reason)
        else:
            _log.warning("resolved: %s", reason)
            return


def listen_at(address: str, key: str) -> list[socket.socket]:
    """Sockets that listen at ``HOST:PORT``: one for each address that the host's name has.

    ``0.0.0.0`` is every IPv4 address, ``[::]`` and no host at all every one of both families. Raises
    ``AddressError``, in the system's words. It may wait for a name to be looked up.
    """
    host, _, port = address.rpartition(":")
    listening: list[socket.socket] = []
    try:
        if int(port) not in range(_PORTS):
            raise ValueError(f"a port is a number below {_PORTS}")
        found = socket.getaddrinfo(
            host.strip("[]") or _EVERY_ADDRESS, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, place in found:
            listening.append(socket.socket(family, kind | socket.SOCK_NONBLOCK, protocol))
            _listen(listening[-1], place)
    except (OSError, ValueError) as error:
        for each in listening:
            each.close()
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise AddressError(f"{key}: cannot listen on {address}: {reason}") from error
    return listening


def _listen(listener: socket.socket, place: Any) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if listener.family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, place[0] != _EVERY_ADDRESS)
    listener.bind(place)
    listener.listen(BACKLOG)
