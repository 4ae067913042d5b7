"""A value made from files, such as certificates, that is made again once the files have changed.

Files that cannot be used at that moment are reported, and the last good value stays in use. It watches
nothing: it looks at the files when the value is asked for.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)

Value = TypeVar("Value")

Stamp = tuple[tuple[int, int, int], ...]


def stamp_of(*paths: Path) -> Stamp:
    """It differs once one of the files was changed or replaced. Raises ``OSError``."""
    stats = [path.stat() for path in paths]
    return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in stats)


class LastGood(Generic[Value]):
    """``make`` raises ``unusable`` where the files cannot be used; at the start this raises it too.
    ``what`` they hold, in the plural, begins the lines of the log.
    """

    def __init__(
        self,
        what: str,
        *,
        stamp: Callable[[], Stamp],
        make: Callable[[], Value],
        unusable: type[Exception],
    ) -> None:
        self._what = what
        self._stamp = stamp
        self._make = make
        self._unusable = unusable
        self._good = make()
        self._seen = stamp()

    def current(self) -> Value:
        self.renewed()
        return self._good

    def renewed(self) -> Value | None:
        """The new value where the files have changed and can be used, else None."""
        try:
            found = self._stamp()
            if found == self._seen:
                return None
            self._seen = found
            self._good = self._make()
        except (OSError, self._unusable) as error:
            _log.error("%s changed but cannot be used; the last good ones stay in use: %s", self._what, error)
            return None
        _log.info("%s changed: new connections use the new ones", self._what)
        return self._good
