"""Sockets to listen on: unix sockets as files, and TCP addresses.

A unix socket has its permissions from the first moment on. The socket file of an earlier daemon is removed,
but never a socket on which another process answers, nor a file that is no socket. A file that somebody else
has put in its place is not changed: the socket is opened by a file descriptor before it is given to a group.

A TCP address that cannot be bound yet is logged once and tried again: a daemon that starts before its
network is better without such a listener than not running. An error that time cannot mend, such as a
certificate without its key, ends the start.
"""

import asyncio
import logging
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from nodeagent.api.access.credentials import group_id
from nodeagent.system.directories import NotOwnError, make_own

RETRY_S = 2.0
BACKLOG: Final = 128
SOCKET_MODE = 0o660
EVERYBODYS_MODE = 0o666
_MAX_PATH_BYTES = 107
_OWNER_ONLY_UMASK = 0o177
_EVERY_ADDRESS: Final = "::"
_PORTS: Final = 65536
_log = logging.getLogger(__name__)


class OutletError(Exception):
    """An outlet cannot be opened; the message names what and what would be right."""


def prepare(path: Path, key: str) -> None:
    """Makes way for a new socket. Raises ``OutletError`` if it cannot be; ``key`` is the config's."""
    if len(os.fsencode(path)) > _MAX_PATH_BYTES:
        raise OutletError(
            f"{key}: {path} is longer than the {_MAX_PATH_BYTES} bytes a socket's path may have"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutletError(f"{key}: {path}: {error.strerror}") from error
    if not stat.S_ISSOCK(mode):
        raise OutletError(f"{key}: {path} exists and is no socket; remove it or choose another path")
    if _answers(path):
        raise OutletError(f"{key}: another process answers on {path}; stop it or choose another path")
    path.unlink(missing_ok=True)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


@contextmanager
def owner_only() -> Iterator[None]:
    """Files made within are for their owner only. The umask is the process's: await nothing within."""
    before = os.umask(_OWNER_ONLY_UMASK)
    try:
        yield
    finally:
        os.umask(before)


def bound(path: Path, key: str) -> socket.socket:
    """A socket for its owner only, that refuses connections until then: see ``open_to``, then listen."""
    prepare(path, key)
    bound_socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        with owner_only():
            bound_socket.bind(str(path))
    except OSError as error:
        bound_socket.close()
        raise OutletError(f"{key}: {path}: {error.strerror}") from error
    return bound_socket


def open_to(path: Path, group: str, key: str) -> None:
    """Lets a group use a socket: 0660, and the group where it exists and may be given.

    Raises ``OutletError`` where the path leads to anything but a socket of this user.
    """
    try:
        with _held(path, key) as socket_file:
            _give_to(socket_file, path, group)
            socket_file.chmod(SOCKET_MODE)
    except OSError as error:
        raise OutletError(f"{key}: {path}: {error.strerror}") from error


def open_to_everybody(path: Path, key: str) -> None:
    """Lets every user of the node use a socket: 0666. Raises as ``open_to``."""
    try:
        with _held(path, key) as socket_file:
            socket_file.chmod(EVERYBODYS_MODE)
    except OSError as error:
        raise OutletError(f"{key}: {path}: {error.strerror}") from error


@contextmanager
def _held(path: Path, key: str) -> Iterator[Path]:
    """The file itself, whatever its name leads to later. A symlink is no socket, and not followed."""
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            raise OutletError(f"{key}: {path} was replaced by somebody else; choose a folder of your own")
        # O_PATH descriptors take no fchmod; this link leads to the file and nowhere else.
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _give_to(socket_file: Path, path: Path, group: str) -> None:
    gid = group_id(group)
    if gid is None:
        _log.info("%s: there is no group %s; only the daemon's own user and group may connect", path, group)
        return
    try:
        os.chown(socket_file, -1, gid)
    except PermissionError:
        _log.info("%s: not permitted to set the group %s; the daemon's own group stays", path, group)


def private_directory(path: Path, key: str) -> Path:
    """A directory that no other user may enter. Raises ``OutletError`` where it cannot be."""
    try:
        make_own(path, 0o700)
    except NotOwnError as error:
        raise OutletError(f"{key}: {error}") from error
    except OSError as error:
        raise OutletError(f"{key}: {path}: {error.strerror}") from error
    return path


def remove(path: Path) -> None:
    """Takes a socket's file away; one that is gone already is fine."""
    path.unlink(missing_ok=True)


class AddressError(OutletError):
    """The address cannot be listened on now: it is in use, or its network is not up yet."""


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
