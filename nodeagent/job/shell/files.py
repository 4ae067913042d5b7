"""Opens and writes the files of a job: regular ones of bounded size, written whole.

A folder of a job may be shared, and a user who may write there can put anything under the name of a file: a
FIFO that waits for its other end, a link to a device without end or to another user's file, or another name
of such a file. These are refused, with the reason. A file that the user names on the command line may be a
link: the kubelet makes such links for the annotations of a pod.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path


_KINDS: Final = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_SEEN_BY_OPEN: Final = (errno.ELOOP, errno.ENXIO)
"""Of a link that is not to be followed, and of a socket or a FIFO without a reader: open(2)."""


class NotRegularError(OSError):
    """There is something of that name, and it is no regular file, or too large."""


def read(path: Path | str, most_bytes: int, *, is_own: bool = True) -> bytes:
    """All of it. ``is_own``: it lies in a folder of the job, where it is no link.

    Raises ``OSError``, and ``NotRegularError``, also where it holds more than that.
    """
    data = read_start(path, most_bytes + 1, is_own=is_own)
    if len(data) > most_bytes:
        raise NotRegularError(errno.EFBIG, f"it has more than {most_bytes} bytes", str(path))
    return data


def read_start(path: Path | str, most_bytes: int, *, is_own: bool = True) -> bytes:
    """As ``read``, and of a larger file the first bytes."""
    opened = _open(path, os.O_RDONLY, is_own=is_own)
    try:
        pieces = []
        while most_bytes > 0 and (piece := os.read(opened, most_bytes)):
            pieces.append(piece)
            most_bytes -= len(piece)
        return b"".join(pieces)
    finally:
        os.close(opened)


def open_own(path: Path | str, flags: int, mode: int = 0o600) -> int:
    """The descriptor of a file in a folder of the job, opened with these flags. Raises as ``read``."""
    return _open(path, flags, mode, is_own=True)


def open_named(path: Path | str, flags: int, mode: int = 0o600) -> int:
    """As ``open_own``, of a file that the user names: it may be a link, and have several names."""
    return _open(path, flags, mode, is_own=False)


def make_folder(path: Path) -> None:
    """The user's own where it is made; one that is there already is no link. Raises ``OSError``."""
    path.mkdir(mode=0o700, exist_ok=True)
    if path.is_symlink():
        raise NotRegularError(errno.ENOTDIR, "it is a link, and a folder is needed", str(path))


def _open(path: Path | str, flags: int, mode: int = 0o600, *, is_own: bool) -> int:
    own = os.O_NOFOLLOW if is_own else 0
    empties = flags & os.O_TRUNC  # not before it is known what it is
    try:
        opened = os.open(path, flags & ~os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC | own, mode)
    except OSError as error:
        if error.errno not in _SEEN_BY_OPEN:
            raise
        found = os.stat(path, follow_symlinks=not is_own)  # noqa: PTH116 # pathlib costs milliseconds
        raise _not_regular(path, found.st_mode) from error
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode):
        os.close(opened)
        raise _not_regular(path, found.st_mode)
    if is_own and found.st_nlink > 1:
        os.close(opened)
        raise NotRegularError(
            errno.EMLINK, "it is a hard link, and a file with one name is needed", str(path)
        )
    if empties:
        os.ftruncate(opened, 0)
    return opened


def _not_regular(path: Path | str, mode: int) -> NotRegularError:
    if stat.S_ISDIR(mode):
        return NotRegularError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    kind = _KINDS.get(stat.S_IFMT(mode), "something else")
    return NotRegularError(errno.EINVAL, f"it is {kind}, and a regular file is needed", str(path))


def write(file: Path, text: str, *, is_lasting: bool = True) -> None:
    """``is_lasting``: also where the power fails. Raises ``OSError``."""
    new = file.with_suffix(".new")
    with suppress(FileNotFoundError):  # of one that was killed amid it, or put there by another
        new.unlink()
    made = open_own(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with open(made, "w", encoding="utf-8") as opened:  # noqa: PTH123 # of a descriptor
        opened.write(text)
        opened.flush()
        if is_lasting:
            os.fsync(opened.fileno())
    new.replace(file)
    if is_lasting:
        _keep_names(file.parent)


def _keep_names(folder: Path) -> None:
    """Without this, the power may fail before the new name is on the disk (fsync(2))."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
