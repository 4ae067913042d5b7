"""Doors at TCP addresses that cannot be had yet: told once, and tried again until they open.

A daemon that starts before its network is better without such a door than not there. What cannot work
at all, such as a certificate without its key, is no matter of time and none of this.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable

from nodeagent.outlets.sockets import OutletError

RETRY_S = 2.0

_log = logging.getLogger(__name__)


class AddressError(OutletError):
    """Nobody can listen at this address now: it is another's, or its network is not up yet."""


async def open_or_keep_trying(
    open_door: Callable[[], Awaitable[None]], consequence: str
) -> asyncio.Task[None] | None:
    """Open a door; where its address cannot be had, tell so and hand back the task that goes on trying."""
    try:
        await open_door()
    except AddressError as error:
        _log.error("%s: %s; it is tried again", consequence, error)
        return asyncio.create_task(_keep_trying(open_door, consequence, str(error)))
    return None


async def _keep_trying(open_door: Callable[[], Awaitable[None]], consequence: str, told: str) -> None:
    while True:
        await asyncio.sleep(RETRY_S)
        try:
            await open_door()
        except AddressError as error:
            if str(error) != told:
                told = str(error)
                _log.error("%s: %s; it is tried again", consequence, told)
        else:
            _log.warning("no longer so: %s", told)
            return


def check_address(address: str, key: str) -> None:
    """Raises ``AddressError``, in the system's words, where nobody can listen at ``HOST:PORT`` now.

    It may wait for a name to be looked up.
    """
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(
            host.strip("[]") or None, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, place = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        raise AddressError(f"{key}: cannot listen on {address}: {error.strerror or error}") from error
