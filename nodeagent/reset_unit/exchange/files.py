"""Safe access to files in a folder where a process with fewer rights writes too, and the check of trusted
files.

Only plain files are opened, never a link or a pipe. Reads are bounded, and a written file appears by rename.
``check_trusted`` refuses a path that a user other than root could change or replace: only such files decide
what root does. Requests and results are not known here.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_LOCK_POLL_S: Final = 0.1
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class Locked(Exception):
    """Another process holds the lock."""


def make(folder: Path) -> None:
    """Make the folder for its owner alone; it may be there. Raises ``OSError``."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[int]:
    """The folder, to be given to the functions below.

    Raises ``OSError``, and ``ValueError`` where other users could write in it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid not in (0, os.geteuid()):
            raise ValueError(f"{folder} belongs to uid {status.st_uid}: it must be root's")
        if status.st_mode & _OTHERS_WRITE:
            raise ValueError(f"{folder} can be written by others: chmod go-w {folder}")
        yield descriptor
    finally:
        os.close(descriptor)


def read(folder: int, name: str, max_bytes: int) -> bytes:
    """Raises ``OSError``, and ``ValueError`` for what is no plain file or is too long."""
    with os.fdopen(_open(folder, name, os.O_RDONLY), "rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"{name} has more than {max_bytes} bytes")
    return content


def rename(folder: int, name: str, to: str) -> None:
    """Raises ``OSError``."""
    os.rename(name, to, src_dir_fd=folder, dst_dir_fd=folder)


def write(folder: int, name: str, content: bytes) -> None:
    """Whole and durable, or not at all. Raises ``OSError``."""
    fresh = f".{name}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(fresh, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    rename(folder, fresh, name)
    os.fsync(folder)


@contextlib.contextmanager
def locked(folder: Path, name: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock of that name. Raises ``Locked``, ``OSError`` and ``ValueError``."""
    with opened(folder) as descriptor:
        lock = _open(descriptor, name, os.O_RDWR | os.O_CREAT)
    try:
        until_s = time.monotonic() + wait_s
        while not _taken(lock):
            if time.monotonic() >= until_s:
                raise Locked(name)
            time.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(lock)


def _open(folder: int, name: str, flags: int) -> int:
    """A plain file. O_NONBLOCK: a pipe must not be waited for."""
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f"{name} is a symbolic link") from error
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise ValueError(f"{name} is no plain file")


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_MAX_LINKS: Final = 40
"""As many as the kernel follows in one path (path_resolution(7))."""


class Untrusted(Exception):
    """str() names the path that others may change, and what would be right."""


def check_trusted(path: Path) -> None:
    """The path, each folder above it, and the same for what it leads to by links.

    Raises ``Untrusted``, and ``OSError`` where one of them is not there. A process of another user can give
    no more rights than it has: then nothing is checked.
    """
    if os.geteuid() != 0:
        return
    for place in _places(path.absolute()):
        status = place.lstat()
        if status.st_uid != 0:
            raise Untrusted(f"{place} belongs to uid {status.st_uid}: chown root {place}")
        is_link, is_folder = stat.S_ISLNK(status.st_mode), stat.S_ISDIR(status.st_mode)
        # In a folder such as /tmp only root may rename or remove root's files.
        is_sticky = is_folder and bool(status.st_mode & stat.S_ISVTX)
        if status.st_mode & _OTHERS_MAY_WRITE and not is_link and not is_sticky:
            raise Untrusted(f"{place} can be written by others: chmod go-w {place}")


def _places(path: Path) -> Iterator[Path]:
    """All that the kernel looks at to find it, links and what they lead to."""
    for _ in range(_MAX_LINKS):
        above = Path(path.anchor)
        link = None
        for part in path.parts[1:]:
            yield above
            above = above / part
            if above.is_symlink():
                link = above
                break
        yield above
        if link is None:
            return
        rest = path.parts[len(link.parts) :]
        path = link.parent.joinpath(link.readlink(), *rest)
    raise Untrusted(f"{path}: too many symbolic links")
