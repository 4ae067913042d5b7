"""Keys of cells in groups, each group in the order in which its keys came. It knows no meaning of either."""

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

from nodeagent.core.timers import Key

G = TypeVar("G", bound=Hashable)


class Groups(Generic[G]):
    def __init__(self) -> None:
        self._keys: dict[G, dict[Key, None]] = {}

    def of(self, group: G) -> Collection[Key]:
        return self._keys.get(group, ())

    def add(self, group: G, key: Key) -> None:
        self._keys.setdefault(group, {})[key] = None

    def remove(self, group: G, key: Key) -> None:
        """Raises KeyError where it is not in the group."""
        keys = self._keys[group]
        del keys[key]
        if not keys:
            del self._keys[group]

    def clear(self) -> None:
        self._keys.clear()
