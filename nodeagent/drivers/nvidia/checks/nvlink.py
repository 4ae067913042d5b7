"""NVLink of one GPU: which links are up, and which ought to be. Their errors are ``nvlink_errors``.

A link without a partner is inactive too, so that "inactive" alone is no fault. What ought to be up follows
from

    what was up before          remembered by the GPU (``baseline``), over workers, daemons and boots
    the other GPUs beside it    of the same product, with as many links
    the board                   where it has joined a fabric of switches, each link of it leads to one

A link that was up and is refused now (NOT_SUPPORTED) is down. States come as fields per link, all links by
one call; on the oldest drivers by a call per link. A GPU that is cut in pieces (MIG), or whose driver was
told not to use NVLink, misses none.
"""

import threading
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

import pynvml

from nodeagent.drivers.nvidia.baseline import Baseline
from nodeagent.drivers.nvidia.calls import NOT_OF_THIS_GPU, Calls, Readings
from nodeagent.drivers.nvidia.checks.nvlink_errors import LinkErrors
from nodeagent.drivers.nvidia.fields import Field, Fields
from nodeagent.wire import Active

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
    ``unused``: nobody uses its links. ``may_train``: they may still be on their way up.
    """

    joined: bool = False
    is_sxm: bool = False
    is_in_guest: bool = False
    unused: bool = False
    may_train: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    """Of one GPU: how many links it has, if it says so, how many are up, and whether they lead to
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
        self._seen: dict[str, dict[str, _Seen]] = {}

    def note(self, product: str, device: str, count: int | None, up: int, *, switched: bool) -> None:
        with self._lock:
            self._seen.setdefault(product, {})[device] = _Seen(count, up, switched)

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


class Links:
    """The links of one GPU of a product. ``peers`` are the others."""

    def __init__(
        self, calls: Calls, device: str, product: str, peers: Peers, baseline: Baseline | None = None
    ) -> None:
        self._calls = calls
        self._device = device
        self._product = product
        self._peers = peers
        self._baseline = baseline or Baseline()
        if self._baseline.is_unseen(INACTIVE):
            self._baseline.links.in_doubt = True
        self._counted = Fields(calls, [_COUNT])
        self._is_counted = False
        self._up: frozenset[int] = frozenset()
        self._ever_up = False
        self._reads = 0
        self._partner: int | None = None
        self._beside: tuple[int, bool] | None = None
        self._states: Fields | None = None
        self._numbers: Sequence[int] = ()
        self._errors = LinkErrors(calls)

    def states(self, readings: Readings, board: Board) -> Sequence[Active] | None:
        """Which links are up; the code of their fault where one ought to be and is not. None: unknown."""
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
        self, readings: Readings, board: Board, up: Set[int], down: Set[int], unread: Set[int]
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
        beside = f"{best} are up on another GPU of its kind"
        none_up = INACTIVE if board.joined and not board.is_in_guest else FEWER
        is_linked = board.joined or kept.switched
        rules = (
            (down, INACTIVE, max(len(down), behind * is_switched), "they were up before"),
            (behind and is_switched, INACTIVE, behind, beside),
            (idle and board.joined and not up, none_up, idle, "none is up, though the board has switches"),
            (behind and (up or not self._states_known), FEWER, behind, beside),
            (idle and is_linked and up, FEWER, idle, f"it has {kept.count}"),
            (idle and board.is_sxm and not (up or best), FEWER, idle, f"it has {kept.count}"),
        )
        return next((_Fault(code, missing, why) for holds, code, missing, why in rules if holds), None)

    @property
    def _states_known(self) -> bool:
        """Whether any link of it tells its state."""
        return any(not self._is_refused(link) for link in self._numbers)

    def lead_to_switches(self) -> bool:
        """Those of this GPU, or of another of its product."""
        kept = self._baseline.links
        return kept.switched or kept.peers_switched or self._peers.lead_to_switches(self._product)

    def errors(self, readings: Readings) -> None:
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
        self._beside = self._peers.best(self._product, self._device, kept.count)
        if self._beside is not None:
            best, switched = self._beside
            kept.peers = max(best, kept.peers)
            kept.peers_switched = kept.peers_switched or switched

    def _best(self) -> tuple[int, bool]:
        """Where they lead to switches, what is right is not less because others have failed since.
        Elsewhere the others count as they are, once all of them were read.
        """
        kept = self._baseline.links
        if kept.peers_switched or self._beside is None or self._reads < READS:
            return kept.peers, kept.peers_switched
        return self._beside

    def _ask_where_they_lead(self) -> None:
        if not self._up:
            return
        first = min(self._up)
        self._partner = self._calls.ask(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, first, variant=(first,))
        if self._partner == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            self._baseline.links.switched = True

    # ------------------------------------------------------------------ what NVML says

    def _count(self) -> None:
        """How many links the GPU has. Where it does not say so, nor did before, each is tried."""
        kept = self._baseline.links
        count = None if self._is_counted else self._counted.read().get(_COUNT)
        if count is not None:
            self._is_counted = True
            kept.count = max(min(int(count), pynvml.NVML_NVLINK_MAX_LINKS), max(kept.up, default=-1) + 1)
        numbers = range(pynvml.NVML_NVLINK_MAX_LINKS if kept.count is None else kept.count)
        if self._states is None or len(numbers) != len(self._numbers):
            self._numbers = numbers
            self._states = Fields(self._calls, [(_STATE, link) for link in numbers])

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
