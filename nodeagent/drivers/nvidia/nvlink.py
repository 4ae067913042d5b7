"""NVLink of one GPU: which links are up, which ought to be, and their errors.

A link without a partner is inactive too, so that "inactive" alone is no fault. A link ought to be up that
was up before, and on GPUs whose links lead to switches as many as the best GPU of that product has.
States and errors come as fields per link, all links by one call; on the oldest drivers by a call per link.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Final

import pynvml

from nodeagent.drivers.nvidia.calls import NOT_OF_THIS_GPU, Calls, Readings
from nodeagent.drivers.nvidia.fields import Field, Fields

INACTIVE: Final = "NV_NVLINK_INACTIVE"

LINK_CODES: Final = frozenset({INACTIVE})

_STATE: Final = pynvml.NVML_FI_DEV_NVLINK_GET_STATE
_INACTIVE_STATE: Final = 0
"""NVML_NVLINK_STATE_INACTIVE of nvml.h; one that sleeps (2) is up."""

_COUNT: Final[Field] = (pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT, 0)

_ERRORS: Final[Sequence[tuple[str, int]]] = (
    ("replay", pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY),
    ("recovery", pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY),
    ("crc", pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC),
    ("malformed", pynvml.NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS),
    ("overrun", pynvml.NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS),
    ("receive", pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS),
    ("receive_remote", pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS),
    ("integrity", pynvml.NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS),
    ("discard", pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS),
    ("recovery", pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS),
    ("recovery_failed", pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS),
    ("recovered", pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS),
    ("effective", pynvml.NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS),
    ("symbol", pynvml.NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS),
)
"""Kind and field: the first three up to Hopper, the others from Blackwell on in their place (nvml.h)."""

_KINDS_OF_RECOVERY: Final = ("recovery_failed", "recovered")
"""Each of these is counted as a recovery too."""

_BIT_ERROR_RATES: Final[Mapping[str, int]] = {
    "nvlink_bit_error_ratio.effective": pynvml.NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER,
    "nvlink_bit_error_ratio.symbol": pynvml.NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER,
}
"""From Blackwell on, of the worst link."""

_OLD_ERRORS: Final[Mapping[str, int]] = {
    "replay": pynvml.NVML_NVLINK_ERROR_DL_REPLAY,
    "recovery": pynvml.NVML_NVLINK_ERROR_DL_RECOVERY,
    "crc_flit": pynvml.NVML_NVLINK_ERROR_DL_CRC_FLIT,
    "crc_data": pynvml.NVML_NVLINK_ERROR_DL_CRC_DATA,
    "ecc_data": pynvml.NVML_NVLINK_ERROR_DL_ECC_DATA,
}
_BYTES: Final[Mapping[str, int]] = {
    "link_sent_bytes_total": pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES,
    "link_received_bytes_total": pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES,
}


class Peers:
    """How many links are up on each GPU, where they lead to switches. Shared by the threads of all GPUs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._switched: dict[str, dict[str, int]] = {}

    def note(self, product: str, device: str, active: int) -> None:
        with self._lock:
            self._switched.setdefault(product, {})[device] = active

    def most(self, product: str) -> int:
        """Of the best GPU of that product; 0 where none has links to a switch."""
        with self._lock:
            return max(self._switched.get(product, {}).values(), default=0)


class Links:
    """Of one GPU of a product. ``peers`` are the others."""

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
        self._errors: Fields | None = None
        self._old = False

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
            self._up, self._errors = frozenset(up), None
            self._ever_up |= up
            self._tell_peers()
        if not known:
            return []
        missing = len(self._ever_up - up)
        if not unread:
            missing = max(missing, self._peers.most(self._product) - len(up))
        readings.put("nvlink_links_up", float(len(up)))
        readings.put("nvlink_links_missing", float(max(0, missing)))
        return [INACTIVE] if missing > 0 else []

    def errors(self, readings: Readings) -> None:
        """Errors by kind and by link, of the links that are up, and what they carried."""
        if not self._up:
            return
        by_kind = self._old_errors() if self._old else self._new_errors(readings)
        if not by_kind and not self._old:
            self._old = True
            by_kind = self._old_errors()
        by_link: dict[int, float] = {}
        for kind, errors in by_kind.items():
            readings.put(f"nvlink_errors_total.{kind}", sum(errors.values()))
            if kind not in _KINDS_OF_RECOVERY:
                for link, count in errors.items():
                    by_link[link] = by_link.get(link, 0.0) + count
        for link, count in by_link.items():
            readings.put(f"nvlink_link_errors_total.{link}", count)

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
        """The state of each link that tells it by a field; older drivers have none."""
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

    def _tell_peers(self) -> None:
        if not self._up:
            return
        first = min(self._up)
        partner = self._calls.ask(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, first)
        if partner == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            self._peers.note(self._product, self._device, len(self._up))

    def _new_errors(self, readings: Readings) -> dict[str, dict[int, float]]:
        if self._errors is None:
            ids = (*(number for _, number in _ERRORS), *_BYTES.values(), *_BIT_ERROR_RATES.values())
            self._errors = Fields(
                self._calls, [(number, link) for number in ids for link in sorted(self._up)]
            )
        read = self._errors.read()
        for name, number in _BYTES.items():
            carried = [value for (field, _), value in read.items() if field == number]
            if carried:
                readings.put(name, sum(carried))
        for name, number in _BIT_ERROR_RATES.items():
            rates = [_ratio(int(value)) for (field, _), value in read.items() if field == number]
            readings.put(name, max(rates, default=None), most=1)
        found: dict[str, dict[int, float]] = {}
        for kind, number in _ERRORS:
            errors = {link: value for (field, link), value in read.items() if field == number}
            if errors:
                found[kind] = errors
        return found

    def _old_errors(self) -> dict[str, dict[int, float]]:
        found: dict[str, dict[int, float]] = {}
        for kind, counter in _OLD_ERRORS.items():
            for link in sorted(self._up):
                errors = self._calls.ask(
                    pynvml.nvmlDeviceGetNvLinkErrorCounter, link, counter, variant=(counter,)
                )
                if errors is not None:
                    found.setdefault(kind, {})[link] = float(errors)
        return found


def _ratio(packed: int) -> float:
    """Mantissa and negative exponent in one number (NVML_NVLINK_BER_* in nvml.h)."""
    return float((packed >> 8 & 0xF) * 10.0 ** -(packed & 0xFF))
