"""The NVLinks of one GPU: which are up, which should be up, and what they have counted.

A link without a partner is inactive, so "inactive" alone is no fault. Which links should be up follows from

    what was up before          kept for the GPU (``baseline``), over workers, daemons and boots
    the other GPUs of the node  of the same product, with as many links
    the board                   if the GPU has joined a fabric of switches, each link leads to one

A link that was up and is refused now (NOT_SUPPORTED) is down. The states are fields for each link, read by
one call; the oldest drivers need a call for each link. A GPU in MIG mode, or whose driver was loaded without
NVLink, misses none.

**Counters.** Up to Hopper a link counts damaged packets (CRC), packets sent again (replay) and trainings
(recovery). NVLink 5, from Blackwell on, corrects errors itself. It counts errors that it could not correct,
lost packets and recoveries, reports a bit error rate, and lacks the older counters. The tables decide how
fast a counter may rise.
"""

import threading
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

import pynvml

from nodeagent.drivers.nvidia.nvml.baseline import GpuBaseline
from nodeagent.drivers.nvidia.nvml.calls import NOT_OF_THIS_GPU, Calls, GpuReadings
from nodeagent.drivers.nvidia.nvml.fields import Field, FieldValues
from nodeagent.wire import Active

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
"""The counters of damaged and lost packets: of these DCGM allows none
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
        """A counter that is lower than before was reset."""
        self.total += value - self.last if value >= self.last else value
        self.last = value


class LinkErrors:
    """The link errors of one GPU. A link that goes down, or starts to count again, takes nothing back of what
    was reported: else its errors would seem to come once more when it is back.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._links: Set[int] = frozenset()
        self._fields = FieldValues(calls, [])
        self._counts: dict[str, dict[int, _Count]] = {}

    def read(self, links: Set[int], readings: GpuReadings) -> None:
        """``links`` are those that are up."""
        if not links:
            return
        if links != self._links:
            self._links = frozenset(links)
            wanted = [(number, link) for number in _FIELDS for link in sorted(links)]
            self._fields = FieldValues(self._calls, wanted)
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
        """Whether the driver has answered for each that it is not supported; a failed call does not count."""
        return all(self._fields.lacks((number, link)) for _, number in _ERRORS for link in self._links)

    def _by_fields(self, readings: GpuReadings) -> dict[str, dict[int, float]]:
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


INACTIVE: Final = "NV_NVLINK_INACTIVE"
FEWER: Final = "NV_NVLINK_FEWER"

LINK_CODES: Final = frozenset({INACTIVE, FEWER})

_STATE: Final = pynvml.NVML_FI_DEV_NVLINK_GET_STATE
_INACTIVE_STATE: Final = 0
"""NVML_NVLINK_STATE_INACTIVE of nvml.h; one that sleeps (2) is up."""

READS: Final = 3
"""After so many of its own a GPU has the others' too: they take turns."""

_COUNT: Final[Field] = (pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What is known of the links from elsewhere.

    ``joined``: it has joined a fabric of switches, or PCI lists some. ``is_sxm``: it is a module of a board
    whose GPUs are linked. ``is_in_guest``: a virtual machine may have been given it without the others.
    ``unused``: its links are not used. ``may_train``: they may still be on their way up.
    """

    joined: bool = False
    is_sxm: bool = False
    is_in_guest: bool = False
    unused: bool = False
    may_train: bool = False


@dataclass(frozen=True, slots=True)
class _SeenLinks:
    """Of one GPU: how many links it has, if it reports them, how many are up, and whether they lead to
    switches.
    """

    count: int | None
    up: int
    switched: bool


@dataclass(frozen=True, slots=True)
class _Fault:
    """So many links are missing, and why they are expected."""

    code: str
    missing: int
    why: str


class Peers:
    """What each GPU has last seen of its links. Shared by the threads of all GPUs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, dict[str, _SeenLinks]] = {}

    def note(self, product: str, device: str, count: int | None, up: int, *, switched: bool) -> None:
        with self._lock:
            self._seen.setdefault(product, {})[device] = _SeenLinks(count, up, switched)

    def best(self, product: str, device: str, count: int | None) -> tuple[int, bool] | None:
        """The most links that are up on another GPU of the product with as many, and whether they lead to
        switches; of those that do, where there are any. None: there is no other.
        """
        with self._lock:
            others = [seen for name, seen in self._seen.get(product, {}).items() if name != device]
        alike = [seen for seen in others if None in (count, seen.count) or seen.count == count]
        if not alike:
            return None
        switched = [seen.up for seen in alike if seen.switched]
        return max(switched or [seen.up for seen in alike]), bool(switched)

    def lead_to_switches(self, product: str) -> bool:
        with self._lock:
            return any(seen.switched for seen in self._seen.get(product, {}).values())


class NvLinkCheck:
    """The links of one GPU of a product. ``peers`` are the others."""

    def __init__(
        self, calls: Calls, device: str, product: str, peers: Peers, baseline: GpuBaseline | None = None
    ) -> None:
        self._calls = calls
        self._device = device
        self._product = product
        self._peers = peers
        self._baseline = baseline or GpuBaseline()
        if self._baseline.is_unseen(INACTIVE):
            self._baseline.links.in_doubt = True
        self._counted = FieldValues(calls, [_COUNT])
        self._is_counted = False
        self._up: frozenset[int] = frozenset()
        self._ever_up = False
        self._reads = 0
        self._partner: int | None = None
        self._best_peer: tuple[int, bool] | None = None
        self._states: FieldValues | None = None
        self._numbers: Sequence[int] = ()
        self._errors = LinkErrors(calls)

    def states(self, readings: GpuReadings, board: Board) -> Sequence[Active] | None:
        """Which links are up; the code of their fault if one should be up and is not. None: unknown."""
        self._count()
        failed = len(self._calls.failed)
        known = self._by_fields()
        if not known:
            known = self._by_calls()
        up = {link for link, state in known.items() if state != _INACTIVE_STATE}
        refused = {link for link in self._numbers if link not in known and self._is_refused(link)}
        # One that could not be read is taken for what it was.
        unread = set(self._numbers) - known.keys() - refused
        up |= self._up & unread
        self._remember(up, is_whole=len(self._calls.failed) == failed)
        kept = self._baseline.links
        down = kept.up - kept.accepted - up - unread
        if not (known or unread or kept.up or self._best()[0]):
            return None
        for link in sorted(known.keys() | (kept.up & refused)):
            readings.put(f"link_up.{link}", float(link in up))
        return self._judged(readings, board, up, down, unread)

    def _judged(
        self, readings: GpuReadings, board: Board, up: Set[int], down: Set[int], unread: Set[int]
    ) -> Sequence[Active] | None:
        kept = self._baseline.links
        idle = max(0, (kept.count or 0) - len(up | unread | kept.accepted))
        fault = self._fault(board, up, down, unread, idle)
        readings.put("nvlink_links_up", float(len(up)))
        readings.put("nvlink_links_missing", float(fault.missing if fault is not None else 0))
        if board.unused:
            return []
        if board.may_train and not self._ever_up:
            return None
        kept.in_doubt = kept.in_doubt and bool(idle or kept.count is None)
        if kept.in_doubt and (fault is None or fault.code != INACTIVE):
            return None
        if fault is None:
            return []
        evidence = {
            "links_up": str(len(up)),
            "links_missing": str(fault.missing),
            "expected_because": fault.why,
        }
        if down:
            evidence["links"] = ",".join(map(str, sorted(down)))
        return [Active(code=fault.code, evidence=evidence)]

    def _fault(
        self, board: Board, up: Set[int], down: Set[int], unread: Set[int], idle: int
    ) -> "_Fault | None":
        """The first that holds. ``down`` were up before, ``idle`` is how many of all it has are not."""
        kept = self._baseline.links
        best, is_switched = self._best()
        behind = max(0, best - len(up | unread | kept.accepted))
        others = f"{best} are up on another GPU of its kind"
        none_up = INACTIVE if board.joined and not board.is_in_guest else FEWER
        is_linked = board.joined or kept.switched
        rules = (
            (down, INACTIVE, max(len(down), behind * is_switched), "they were up before"),
            (behind and is_switched, INACTIVE, behind, others),
            (idle and board.joined and not up, none_up, idle, "none is up, though the board has switches"),
            (behind and (up or not self._states_known), FEWER, behind, others),
            (idle and is_linked and up, FEWER, idle, f"it has {kept.count}"),
            (idle and board.is_sxm and not (up or best), FEWER, idle, f"it has {kept.count}"),
        )
        return next((_Fault(code, missing, why) for holds, code, missing, why in rules if holds), None)

    @property
    def _states_known(self) -> bool:
        """Whether any of its links reports its state."""
        return any(not self._is_refused(link) for link in self._numbers)

    def lead_to_switches(self) -> bool:
        """Those of this GPU, or of another of its product."""
        kept = self._baseline.links
        return kept.switched or kept.peers_switched or self._peers.lead_to_switches(self._product)

    def errors(self, readings: GpuReadings) -> None:
        """Read the errors of the links that are up."""
        self._errors.read(self._up, readings)

    # ------------------------------------------------------------------ what is remembered

    def _remember(self, up: Set[int], *, is_whole: bool) -> None:
        kept = self._baseline.links
        self._reads += 1
        self._up = frozenset(up)
        if self._partner is None and not kept.switched:
            self._ask_where_they_lead()
        self._ever_up = self._ever_up or bool(up)
        if is_whole and self._baseline.accepts_links:
            kept.up, kept.accepted = set(up), set(self._numbers) - up
            kept.peers, kept.peers_switched, kept.in_doubt = 0, False, False
            self._baseline.accepts_links = False
        kept.up |= up
        kept.accepted -= up
        if up or is_whole:
            self._peers.note(self._product, self._device, kept.count, len(up), switched=kept.switched)
        self._best_peer = self._peers.best(self._product, self._device, kept.count)
        if self._best_peer is not None:
            best, switched = self._best_peer
            kept.peers = max(best, kept.peers)
            kept.peers_switched = kept.peers_switched or switched

    def _best(self) -> tuple[int, bool]:
        """Where they lead to switches, what is right is not less because others have failed since.
        Elsewhere the others count as they are, once all of them were read.
        """
        kept = self._baseline.links
        if kept.peers_switched or self._best_peer is None or self._reads < READS:
            return kept.peers, kept.peers_switched
        return self._best_peer

    def _ask_where_they_lead(self) -> None:
        if not self._up:
            return
        first = min(self._up)
        self._partner = self._calls.ask(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, first, variant=(first,))
        if self._partner == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            self._baseline.links.switched = True

    # ------------------------------------------------------------------ the answers of NVML

    def _count(self) -> None:
        """How many links the GPU has. If it never reported a number, each link is tried."""
        kept = self._baseline.links
        count = None if self._is_counted else self._counted.read().get(_COUNT)
        if count is not None:
            self._is_counted = True
            kept.count = max(min(int(count), pynvml.NVML_NVLINK_MAX_LINKS), max(kept.up, default=-1) + 1)
        numbers = range(pynvml.NVML_NVLINK_MAX_LINKS if kept.count is None else kept.count)
        if self._states is None or len(numbers) != len(self._numbers):
            self._numbers = numbers
            self._states = FieldValues(self._calls, [(_STATE, link) for link in numbers])

    def _by_fields(self) -> dict[int, float]:
        """The state of each link that has it in a field; older drivers have none."""
        assert self._states is not None, "they were counted"
        return {link: state for (_, link), state in self._states.read().items()}

    def _by_calls(self) -> dict[int, float]:
        assert self._states is not None, "they were counted"
        if any(not self._states.lacks((_STATE, link)) for link in self._numbers):
            return {}
        states = {
            link: self._calls.ask(
                pynvml.nvmlDeviceGetNvLinkState, link, variant=(link,), absent=NOT_OF_THIS_GPU
            )
            for link in self._numbers
        }
        return {link: float(state) for link, state in states.items() if state is not None}

    def _is_refused(self, link: int) -> bool:
        """By the field, and where no link has that also by the call."""
        assert self._states is not None, "they were counted"
        if not self._states.lacks((_STATE, link)):
            return False
        has_fields = any(not self._states.lacks((_STATE, each)) for each in self._numbers)
        return has_fields or self._calls.lacks(pynvml.nvmlDeviceGetNvLinkState, link)
