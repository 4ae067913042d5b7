"""Unix sockets as files: permissions from the first moment on, groups, leftovers of an earlier daemon.

It never removes a socket that somebody answers on, nor a file that is no socket.
"""

import logging
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodeagent.outlets.credentials import group_id

SOCKET_MODE = 0o660

_MAX_PATH_BYTES = 107
_OWNER_ONLY_UMASK = 0o177
_BACKLOG = 128

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


def open_to(path: Path, group: str) -> None:
    """Lets a group use a socket: 0660, and the group where it exists and may be given."""
    gid = group_id(group)
    if gid is None:
        _log.info("%s: there is no group %s; only the daemon's own user and group may connect", path, group)
    else:
        try:
            os.chown(path, -1, gid)
        except PermissionError:
            _log.info("%s: may not be given to the group %s; it keeps the daemon's own group", path, group)
    path.chmod(SOCKET_MODE)


def listen(path: Path, key: str) -> socket.socket:
    """A listening socket for its owner only, until ``open_to``."""
    prepare(path, key)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        with owner_only():
            listener.bind(str(path))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise OutletError(f"{key}: {path}: {error.strerror}") from error
    return listener


def private_directory(path: Path, key: str) -> Path:
    """A directory that nobody else may enter. Raises ``OutletError`` if it is somebody else's."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o700)
        if path.lstat().st_uid != os.geteuid() or path.is_symlink():
            raise OutletError(f"{key}: {path} belongs to another user; remove it")
    except OSError as error:
        raise OutletError(f"{key}: {path}: {error.strerror}") from error
    return path


def remove(path: Path) -> None:
    """Takes a socket's file away; one that is gone already is fine."""
    path.unlink(missing_ok=True)
