"""Whether a file or a folder is root's alone: nobody else may change it, or put another in its place.

What is done as root is decided by such files only. It changes nothing.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_MAX_LINKS: Final = 40
"""As many as the kernel follows in one path (path_resolution(7))."""


class Untrusted(Exception):
    """str() names the path that others may change, and what would be right."""


def check(path: Path) -> None:
    """The path, each folder above it, and the same for what it leads to by links.

    Raises ``Untrusted``, and ``OSError`` where one of them is not there. Who is not root gives nobody more
    than he has himself: then nothing is checked.
    """
    if os.geteuid() != 0:
        return
    for place in _places(path.absolute()):
        status = place.lstat()
        if status.st_uid != 0:
            raise Untrusted(f"{place} belongs to uid {status.st_uid}: chown root {place}")
        is_link, is_folder = stat.S_ISLNK(status.st_mode), stat.S_ISDIR(status.st_mode)
        # In a folder such as /tmp nobody may rename or remove what is root's.
        is_sticky = is_folder and bool(status.st_mode & stat.S_ISVTX)
        if status.st_mode & _OTHERS_WRITE and not is_link and not is_sticky:
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
