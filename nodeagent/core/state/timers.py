"""Deadlines of the core, ordered by time and then by key, so that equal inputs fire in equal order.

It knows keys and times only: what a deadline means is the business of whoever set it.
"""

import heapq

Key = tuple[str, ...]


class Timers:
    """At most one deadline per key; setting a key again moves it.

    A deadline moved to a later time keeps its place in the heap until that comes up: a storm that
    postpones one deadline a million times costs a million assignments, not as many heap entries.
    """

    def __init__(self) -> None:
        self._at_ns: dict[Key, int] = {}
        self._queued_ns: dict[Key, int] = {}
        self._heap: list[tuple[int, Key]] = []

    def set(self, key: Key, at_ns: int | None) -> None:
        """Move the key's deadline, or remove it with None."""
        if at_ns is None:
            self._at_ns.pop(key, None)
            return
        self._at_ns[key] = at_ns
        queued_ns = self._queued_ns.get(key)
        if queued_ns is None or at_ns < queued_ns:
            self._queued_ns[key] = at_ns
            heapq.heappush(self._heap, (at_ns, key))
            self._shed()

    def next_ns(self) -> int | None:
        while self._heap:
            queued_ns, key = self._heap[0]
            at_ns = self._at_ns.get(key)
            if at_ns == queued_ns:
                return at_ns
            if self._queued_ns.get(key) != queued_ns:
                heapq.heappop(self._heap)
            elif at_ns is None:
                heapq.heappop(self._heap)
                del self._queued_ns[key]
            else:
                heapq.heapreplace(self._heap, (at_ns, key))
                self._queued_ns[key] = at_ns
        return None

    def pop_due(self, now_ns: int) -> tuple[int, Key] | None:
        """Take the earliest deadline at or before ``now_ns``, else None."""
        if not self._heap or self._heap[0][0] > now_ns:
            return None
        at_ns = self.next_ns()
        if at_ns is None or at_ns > now_ns:
            return None
        _, key = heapq.heappop(self._heap)
        del self._at_ns[key]
        del self._queued_ns[key]
        return at_ns, key

    def _shed(self) -> None:
        """Drop outlived entries once they outnumber the live ones: no storm may grow the heap."""
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self._at_ns):
            self._heap = [(at_ns, key) for key, at_ns in self._at_ns.items()]
            self._queued_ns = dict(self._at_ns)
            heapq.heapify(self._heap)
