"""What the NVLinks of one GPU have counted: errors by kind and by link, and what the links carried.

Up to Hopper a link counts what came damaged (CRC), what it sent again (replay) and when it was trained anew
(recovery). NVLink 5, from Blackwell on, corrects errors in passing and counts what that did not mend, packets
that were lost and its recoveries; it also gives its bit error rate, and lacks the counters of before.
All links are read by one call; on the oldest drivers by a call for each. Counters only: how fast they may
rise, the tables say.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

import pynvml

from nodeagent.drivers.nvidia.calls import Calls, Readings
from nodeagent.drivers.nvidia.fields import Fields

_ERRORS: Final[Sequence[tuple[str, int]]] = (
    ("replay", pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY),
    ("recovery", pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY),
    ("crc", pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC),
    ("malformed", pynvml.NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS),
    ("overrun", pynvml.NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS),
    ("receive", pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS),
    ("receive_remote", pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS),
    ("receive_general", pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS),
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

_PACKETS: Final = frozenset(
    {"malformed", "overrun", "receive", "receive_remote", "receive_general", "integrity", "effective"}
)
"""What says that packets came damaged or were lost: of these DCGM allows none
(``MonitorNVLink5Fields`` in modules/health/DcgmHealthWatch.cpp). One packet may be counted by several.
"""

_BIT_ERROR_RATES: Final[Mapping[str, int]] = {
    "nvlink_bit_error_ratio.effective": pynvml.NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER,
    "nvlink_bit_error_ratio.symbol": pynvml.NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER,
}
"""From Blackwell on, of the worst link."""

_OLD_ERRORS: Final[Mapping[str, int]] = {
    "replay": pynvml.NVML_NVLINK_ERROR_DL_REPLAY,
    "recovery": pynvml.NVML_NVLINK_ERROR_DL_RECOVERY,
    "crc": pynvml.NVML_NVLINK_ERROR_DL_CRC_FLIT,
    "crc_data": pynvml.NVML_NVLINK_ERROR_DL_CRC_DATA,
    "ecc_data": pynvml.NVML_NVLINK_ERROR_DL_ECC_DATA,
}
_BYTES: Final[Mapping[str, int]] = {
    "link_sent_bytes_total": pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES,
    "link_received_bytes_total": pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES,
}
_FIELDS: Final = (*(number for _, number in _ERRORS), *_BYTES.values(), *_BIT_ERROR_RATES.values())


@dataclass(slots=True)
class _Count:
    """One kind of error on one link: the count as it was read last, and all that was counted."""

    last: float = 0.0
    total: float = 0.0

    def see(self, value: float) -> None:
        """One that is lower than before has begun anew."""
        self.total += value - self.last if value >= self.last else value
        self.last = value


class LinkErrors:
    """The link errors of one GPU. A link that goes down, or begins to count anew, takes nothing back of what
    was reported: else its errors would seem to come once more when it is back.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._links: Set[int] = frozenset()
        self._fields = Fields(calls, [])
        self._counts: dict[str, dict[int, _Count]] = {}

    def read(self, links: Set[int], readings: Readings) -> None:
        """``links`` are those that are up."""
        if not links:
            return
        if links != self._links:
            self._links = frozenset(links)
            wanted = [(number, link) for number in _FIELDS for link in sorted(links)]
            self._fields = Fields(self._calls, wanted)
        by_kind = self._by_fields(readings)
        if not by_kind and self._lacks_fields():
            by_kind = self._by_calls()
        for kind, errors in by_kind.items():
            for link, value in errors.items():
                self._counts.setdefault(kind, {}).setdefault(link, _Count()).see(value)
            readings.put(f"nvlink_errors_total.{kind}", self._sum(kind))
        own = [counts for kind, counts in self._counts.items() if kind not in _KINDS_OF_RECOVERY]
        for link in {link for errors in by_kind.values() for link in errors}:
            of_link = sum(counts[link].total for counts in own if link in counts)
            readings.put(f"nvlink_link_errors_total.{link}", of_link)
        for link in by_kind.get("recovery", {}):
            readings.put(f"nvlink_recoveries_total.{link}", self._counts["recovery"][link].total)
        if by_kind.keys() & _PACKETS:
            readings.put("nvlink_packet_errors_total", sum(self._sum(kind) for kind in _PACKETS))

    def _sum(self, kind: str) -> float:
        return sum(count.total for count in self._counts.get(kind, {}).values())

    def _lacks_fields(self) -> bool:
        """Whether the driver has said of each that it does not have it; one call that fails says nothing."""
        return all(self._fields.lacks((number, link)) for _, number in _ERRORS for link in self._links)

    def _by_fields(self, readings: Readings) -> dict[str, dict[int, float]]:
        read: dict[int, dict[int, float]] = {}
        for (number, link), value in self._fields.read().items():
            read.setdefault(number, {})[link] = value
        for name, number in _BYTES.items():
            if number in read:
                readings.put(name, sum(read[number].values()))
        for name, number in _BIT_ERROR_RATES.items():
            rates = [bit_error_ratio(int(value)) for value in read.get(number, {}).values()]
            readings.put(name, max(rates, default=None), most=15)
        return {kind: read[number] for kind, number in _ERRORS if number in read}

    def _by_calls(self) -> dict[str, dict[int, float]]:
        found: dict[str, dict[int, float]] = {}
        for kind, counter in _OLD_ERRORS.items():
            for link in sorted(self._links):
                errors = self._calls.ask(
                    pynvml.nvmlDeviceGetNvLinkErrorCounter, link, counter, variant=(counter,)
                )
                if errors is not None:
                    found.setdefault(kind, {})[link] = float(errors)
        return found


def bit_error_ratio(packed: int) -> float:
    """Mantissa and negative exponent in one number (NVML_NVLINK_BER_* in nvml.h).

    A link without errors gives the least of them, 15e-255 (``IsEffectiveBerThresholdExceeded`` in DCGM's
    common/DcgmUtilities.cpp).

    >>> bit_error_ratio(0x30A), bit_error_ratio(0xA0D), bit_error_ratio(0xFFF)
    (3e-10, 1e-12, 1.5e-254)
    """
    return float(f"{packed >> 8 & 0xF}e-{packed & 0xFF}")
