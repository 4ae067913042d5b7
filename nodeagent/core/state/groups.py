"""Keys of cells in groups, each group in the order in which its keys came. It knows no meaning of either."""

from collections.abc import Hashable
from typing import TypeVar

from nodeagent.core.state.timers import Key

G = TypeVar("G", bound=Hashable)


class Groups(dict[G, dict[Key, None]]):
    """``get(group, ())`` are its keys. A dictionary, because it is asked many times for each input."""

    def add(self, group: G, key: Key) -> None:
        self.setdefault(group, {})[key] = None

    def remove(self, group: G, key: Key) -> None:
        """Raises KeyError where it is not in the group."""
        keys = self[group]
        del keys[key]
        if not keys:
            del self[group]
