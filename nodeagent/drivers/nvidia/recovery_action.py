"""What a GPU says of its own state: the codes that are active now, read at start and at each poll.

Events report what happens while somebody listens; this finds what happened before, and what is over.
"""

from typing import Final

import pynvml

from nodeagent.drivers.nvidia.calls import Calls, Readings
from nodeagent.drivers.nvidia.fields import Field, Fields

RECOVERY_ACTION: Final = 154
"""The Xid that says that the recovery action has changed; the field holds what it is."""

RECOVERY_CODES: Final = frozenset({f"XID_{RECOVERY_ACTION}"})
"""What is reported here, without what refines it; so in the other readers of a GPU."""

_ACTION: Final[Field] = (pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0)
_RESET: Final[Field] = (pynvml.NVML_FI_DEV_RESET_STATUS, 0)
_DRAIN: Final[Field] = (pynvml.NVML_FI_DEV_DRAIN_AND_RESET_STATUS, 0)


class Recovery:
    """What the driver wants done with the GPU: the code of Xid 154 with the action as its detail."""

    def __init__(self, calls: Calls) -> None:
        self._action = Fields(calls, [_ACTION])
        self._older = Fields(calls, [_RESET, _DRAIN])
        self._answered = False
        self._names_action = False

    @property
    def names_action(self) -> bool:
        """Whether the GPU names its action, as it did last; only then its Xid need not be reported."""
        return self._names_action

    def decides(self) -> bool:
        """Whether the driver has said which recovery this GPU needs, be it none: then that decides."""
        self._answered = self._answered or self._read() is not None
        return self._answered

    def each_second(self, readings: Readings) -> list[str] | None:
        """Older drivers say only whether a reset is needed. None: this one says nothing."""
        action = self._read()
        if action is None and self._action.lacks(_ACTION):
            older = self._older.read()
            if not older:
                return None
            if older.get(_DRAIN):
                action = pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET
            elif older.get(_RESET):
                action = pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET
        readings.put("recovery_action", action, most=15)
        if action is not None and "recovery_action" not in readings.values:
            return None
        return [f"XID_{RECOVERY_ACTION}.{action:g}"] if action else []

    def _read(self) -> float | None:
        action = self._action.read().get(_ACTION)
        self._names_action = action is not None
        return action
