"""Whose verdict, or whose reset, may be another after a change: devices that are to be looked at again.

It marks them, and looks at nothing itself.
"""

from collections.abc import Iterable

from nodeagent.core.model import Affects, Condition, Device, Kind
from nodeagent.core.state.queries import Queries
from nodeagent.core.verdicts.judge import Judgement


class Marks(Queries):
    """``dirty`` are those whose verdict is to be worked out and shown anew, ``unreviewed`` those of which the
    policy of resets and jobs has to hear; ``judged`` is what was worked out and still holds.
    """

    def __init__(self, of: Iterable[type]) -> None:
        super().__init__(of)
        self.dirty: dict[str, None] = {}
        self.unreviewed: dict[str, None] = {}
        self.judged: dict[str, Judgement] = {}

    def mark(self, device_ids: Iterable[str]) -> None:
        for device_id in device_ids:
            self.dirty[device_id] = None
            self.unreviewed[device_id] = None
            self.judged.pop(device_id, None)
            self.mark(part.id for part in self.parts(device_id))

    def mark_reach(self, condition: Condition) -> None:
        self.mark((condition.device_id,))
        self.mark_affected(condition.affects)

    def mark_affected(self, affects: Affects) -> None:
        if affects is Affects.NODE:
            self.mark((self.node_id,))
        elif affects is Affects.CHIPS_BEHIND:
            self.mark(device.id for device in self.cells[Device].values() if device.kind is Kind.CHIP)
