"""What a follower has printed, read from its file: which events of each node, and whether one is missing."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any


class Output:
    """Call ``read`` again for what came since. ``events`` are numbers by node, in the order in which they
    came; ``begun`` is the number of the first whole state of each.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0
        self.events: dict[str, list[int]] = defaultdict(list)
        self.begun: dict[str, int] = {}
        self.states: dict[str, int] = defaultdict(int)
        self.contacts: list[tuple[str, str]] = []

    def read(self) -> "Output":
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read_bytes += len(line)
                self._take(json.loads(line))
        return self

    def missing(self, last: dict[str, int]) -> dict[str, list[int]]:
        """By node: the numbers that never came, up to the last that there is."""
        found = {}
        for node, newest in last.items():
            begun = self.begun.get(node, 0)
            lacking = set(range(begun + 1, newest + 1)) - set(self.events[node])
            if lacking or node not in self.begun:
                found[node] = sorted(lacking)
        return found

    @property
    def repeated(self) -> int:
        """How many events came twice."""
        return sum(len(numbers) - len(set(numbers)) for numbers in self.events.values())

    @property
    def out_of_order(self) -> list[str]:
        """Nodes of which a number came after a greater one for the first time."""
        return [
            node
            for node, numbers in self.events.items()
            if list(dict.fromkeys(numbers)) != sorted(set(numbers))
        ]

    def _take(self, said: dict[str, Any]) -> None:
        node, what = said["node"], said["what"]
        if what == "event":
            self.events[node].append(said["seq"])
        elif what == "state":
            self.begun.setdefault(node, said["seq"])
            self.states[node] += 1
        else:
            self.contacts.append((node, what))
