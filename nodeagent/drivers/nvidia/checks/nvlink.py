"""NVLink of one GPU: which links are up, and which ought to be. Their errors are ``nvlink_errors``.

A link without a partner is inactive too, so that "inactive" alone is no fault. A link ought to be up that
was up before, and on GPUs whose links lead to switches as many as the best GPU of that product has.
States come as fields per link, all links by one call; on the oldest drivers by a call per link.
"""

import threading
from typing import Final

import pynvml

from nodeagent.drivers.nvidia.calls import NOT_OF_THIS_GPU, Calls, Readings
from nodeagent.drivers.nvidia.checks.nvlink_errors import LinkErrors
from nodeagent.drivers.nvidia.fields import Field, Fields

INACTIVE: Final = "NV_NVLINK_INACTIVE"

LINK_CODES: Final = frozenset({INACTIVE})

_STATE: Final = pynvml.NVML_FI_DEV_NVLINK_GET_STATE
_INACTIVE_STATE: Final = 0
"""NVML_NVLINK_STATE_INACTIVE of nvml.h; one that sleeps (2) is up."""

_COUNT: Final[Field] = (pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT, 0)


class Peers:
    """How many links are up on each GPU, where they lead to switches. Shared by the threads of all GPUs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._switched: dict[str, dict[str, int]] = {}

    def note(self, product: str, device: str, active: int) -> None:
        with self._lock:
            self._switched.setdefault(product, {})[device] = active

    def most(self, product: str) -> int:
        """How many links the best GPU of that product has; 0 where none has links to a switch."""
        with self._lock:
            return max(self._switched.get(product, {}).values(), default=0)


class Links:
    """The links of one GPU of a product. ``peers`` are the others."""

    def __init__(self, calls: Calls, device: str, product: str, peers: Peers) -> None:
        self._calls = calls
        self._device = device
        self._product = product
        self._peers = peers
        self._counted: Fields | None = Fields(calls, [_COUNT])
        self._numbers = list(range(pynvml.NVML_NVLINK_MAX_LINKS))
        self._up: frozenset[int] = frozenset()
        self._ever_up: set[int] = set()
        self._states: Fields | None = None
        self._errors = LinkErrors(calls)

    def states(self, readings: Readings) -> list[str]:
        """Which links are up; the code of their fault where one ought to be and is not."""
        self._count()
        known = self._by_fields() or self._by_calls()
        up = {link for link, state in known.items() if state != _INACTIVE_STATE}
        for link in known:
            readings.put(f"link_up.{link}", float(link in up))
        # One that could not be read is taken for what it was.
        unread = set(self._numbers) - known.keys()
        up |= self._up & unread
        if up != self._up:
            self._up = frozenset(up)
            self._ever_up |= up
            self._note_for_peers()
        if not known:
            return []
        missing = len(self._ever_up - up)
        if not unread:
            missing = max(missing, self._peers.most(self._product) - len(up))
        readings.put("nvlink_links_up", float(len(up)))
        readings.put("nvlink_links_missing", float(max(0, missing)))
        return [INACTIVE] if missing > 0 else []

    def lead_to_switches(self) -> bool:
        """Those of this GPU, or of another of its product."""
        return self._peers.most(self._product) > 0

    def errors(self, readings: Readings) -> None:
        """Read the errors of the links that are up."""
        self._errors.read(self._up, readings)

    def _count(self) -> None:
        """How many links the GPU has: once, and where it does not say so each is tried."""
        if self._counted is None:
            return
        count = self._counted.read().get(_COUNT)
        if count is not None:
            self._numbers = self._numbers[: int(count)]
        if count is not None or self._counted.lacks(_COUNT):
            self._counted = None

    def _by_fields(self) -> dict[int, float]:
        """The state of each link that has it in a field; older drivers have none."""
        if self._states is None:
            self._states = Fields(self._calls, [(_STATE, link) for link in self._numbers])
        return {link: state for (_, link), state in self._states.read().items()}

    def _by_calls(self) -> dict[int, float]:
        if self._states is not None and any(not self._states.lacks((_STATE, link)) for link in self._numbers):
            return {}
        known: dict[int, float] = {}
        for link in self._numbers:
            state = self._calls.ask(
                pynvml.nvmlDeviceGetNvLinkState, link, variant=(link,), absent=NOT_OF_THIS_GPU
            )
            if state is not None:
                known[link] = state
        lacks = self._calls.lacks
        self._numbers = [
            link
            for link in self._numbers
            if link in known or not lacks(pynvml.nvmlDeviceGetNvLinkState, link)
        ]
        return known

    def _note_for_peers(self) -> None:
        if not self._up:
            return
        first = min(self._up)
        partner = self._calls.ask(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, first)
        if partner == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            self._peers.note(self._product, self._device, len(self._up))
