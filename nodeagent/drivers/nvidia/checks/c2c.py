"""The links between a GPU and the CPU that it shares a module with (NVLink-C2C, on GH200 and GB200).

A driver that has them says how many there are, and of each whether it is active
(NVML_FI_DEV_C2C_LINK_COUNT and _GET_STATUS in nvml.h). The GPU's own processor answers
(NV2080_CTRL_CMD_BUS_GET_C2C_INFO in ctrl2080bus.h of NVIDIA's open modules) and the other GPUs wait for it,
so they are asked once a minute: Xids 121 and 173 report errors as they happen. Where C2C is switched off
no link is missed. It trains no link.
"""

import time
from collections.abc import Callable
from typing import Final

import pynvml

from nodeagent.drivers.nvidia.baseline import Baseline
from nodeagent.drivers.nvidia.cached import Cached
from nodeagent.drivers.nvidia.calls import Calls, Readings
from nodeagent.drivers.nvidia.fields import Field, Fields

DOWN: Final = "NV_C2C_DOWN"
C2C_CODES: Final = frozenset({DOWN})
EACH_S: Final = 60.0

MAX_LINKS: Final = 64
_COUNT: Final[Field] = (pynvml.NVML_FI_DEV_C2C_LINK_COUNT, 0)


class C2c:
    """The C2C links of one GPU. ``now_s`` is a clock that does not step."""

    def __init__(
        self,
        calls: Calls,
        now_s: Callable[[], float] = time.monotonic,
        baseline: Baseline | None = None,
    ) -> None:
        self._calls = calls
        self._baseline = baseline or Baseline()
        self._count = Fields(calls, [_COUNT])
        self._links = Cached(self._ask, EACH_S, now_s)

    def read(self, readings: Readings) -> list[str] | None:
        """The codes that are active, None where that is unknown. Raises as ``Calls.ask``."""
        links, up = self._links.get() or (0, 0)
        if self._count.has_lost(_COUNT):
            return None
        if not links:
            return []
        readings.put("c2c_links_up", up)
        readings.put("c2c_links_missing", links - up)
        return [DOWN] if up < links else []

    def _ask(self) -> tuple[int, int] | None:
        """How many there ought to be, and how many are up; None where that is unknown."""
        count = self._count.read().get(_COUNT)
        if count is None:
            return None
        mode = self._calls.ask(pynvml.nvmlDeviceGetC2cModeInfoV) if count else None
        if mode is not None and not mode.isC2cEnabled:
            return 0, 0
        most = max(self._baseline.c2c_links, min(int(count), MAX_LINKS))
        states = [(pynvml.NVML_FI_DEV_C2C_LINK_GET_STATUS, link) for link in range(most)]
        failed = len(self._calls.failed)
        statuses = Fields(self._calls, states).read()
        if len(self._calls.failed) > failed:
            return None
        up = sum(map(bool, statuses.values()))
        self._baseline.see_c2c(most, up)
        return max(up, most - self._baseline.c2c_accepted), up
