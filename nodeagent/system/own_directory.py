"""A directory of one's own, also in a place where anybody may put something in its way. It makes no file."""

import os
from pathlib import Path


class NotOwnError(Exception):
    """It is no directory, or somebody else's; the text names it and says what to do."""


def make_own(path: Path, mode: int) -> None:
    """Makes it where it is missing, and gives it that mode. A symlink is not followed, whoever made it.

    Raises ``NotOwnError``, and ``OSError`` where the system refuses.
    """
    what_to_do = "remove it, or choose another place"
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotOwnError(f"{path} is no directory; {what_to_do}") from error
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise NotOwnError(f"{path} belongs to another user; {what_to_do}")
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
