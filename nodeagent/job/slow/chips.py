"""What distinguishes a chip from its peers: clock, temperature, what slows it down, power, links.

A chip is slow by its own readings if its clock is far below that of equal chips of the same job for ten
minutes, while it is in use as much as they are, and draws no more power or is slowed down by heat. A chip
that has more to do draws more power, and one with less to do is less in use: neither is slow. Nor is one
whose limit somebody has lowered.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple, Protocol

from nodeagent.job.slow.rules import (
    CHIP_AGREE,
    CHIP_CLOCK,
    CHIP_IN_USE,
    CHIP_USE_BEHIND,
    CHIP_USED_SHARE,
    CHIP_WINDOW_S,
    EVEN_SCORE,
    LEAST_PEERS,
    LIMITED,
    OVERHEATED,
)

LEAST_SAMPLES: Final = 6
SAMPLES_OF_A_DIFFERENCE: Final = 6


class ReadChip(Protocol):
    """What is read of a chip: a sample of the supervisor, or what the daemon sends it."""

    @property
    def model(self) -> str: ...
    @property
    def known(self) -> bool: ...
    @property
    def util(self) -> float | None: ...
    @property
    def power_w(self) -> float | None: ...
    @property
    def clock_mhz(self) -> float | None: ...
    @property
    def temperature_c(self) -> float | None: ...
    @property
    def power_limit_w(self) -> float | None: ...
    @property
    def throttled(self) -> tuple[str, ...]: ...
    @property
    def link_errors(self) -> int | None: ...


class _Reading(NamedTuple):
    t_s: float
    chip: ReadChip


class ChipHistory:
    """The readings of one chip over the newest ten minutes."""

    def __init__(self) -> None:
        self._began_s: float | None = None
        self._readings = deque[_Reading]()

    def add(self, t_s: float, chip: ReadChip) -> None:
        if self._began_s is None:
            self._began_s = t_s
        self._readings.append(_Reading(t_s, chip))
        while t_s - self._readings[0].t_s > CHIP_WINDOW_S:
            self._readings.popleft()

    @property
    def newest(self) -> ReadChip:
        return self._readings[-1].chip

    @property
    def is_whole(self) -> bool:
        """It has been read for ten minutes."""
        return self._began_s is not None and self._readings[-1].t_s - self._began_s >= CHIP_WINDOW_S

    @property
    def seconds(self) -> float:
        return self._readings[-1].t_s - self._readings[0].t_s

    def chips(self, newest: int | None = None) -> list[ReadChip]:
        readings = list(self._readings)
        return [each.chip for each in (readings if newest is None else readings[-newest:])]


# ---------------------------------------------------------------------- a chip is slow by its own readings


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowChip:
    """``clock_mhz`` and ``peers_mhz`` are medians over ``seconds``, while in use."""

    name: str
    clock_mhz: float
    peers_mhz: float
    seconds: float


class _Working(NamedTuple):
    """Medians of the readings of a chip in use."""

    clock: float
    use: float
    power: float | None
    limit: float | None
    is_hot: bool
    """The driver reports that heat, or the node's power supply, slows it down."""


def slow_chips(readings: Mapping[str, ChipHistory]) -> tuple[SlowChip, ...]:
    """``readings`` by the chip's name, of one job."""
    if not _is_worth_a_look(readings.values()):
        return ()
    working = {name: _working(each) for name, each in readings.items()}
    found = []
    for name, own in working.items():
        peers = _peers_of(name, readings, working)
        if own is not None and len(peers) >= LEAST_PEERS and _is_slow(own, peers):
            clock = median(each.clock for each in peers)
            seconds = readings[name].seconds
            found.append(SlowChip(name=name, clock_mhz=own.clock, peers_mhz=clock, seconds=seconds))
    return tuple(found)


def keeps_up(name: str, readings: Mapping[str, ChipHistory]) -> bool:
    """A chip that was slow works at the clock of its peers, as far as the newest readings show."""
    working = {each: _working(its, newest=LEAST_SAMPLES) for each, its in readings.items()}
    own, peers = working.get(name), _peers_of(name, readings, working)
    if own is None or len(peers) < LEAST_PEERS:
        return False
    return own.clock >= EVEN_SCORE * median(each.clock for each in peers) and not _is_slow(own, peers)


def _is_worth_a_look(readings: Iterable[ChipHistory]) -> bool:
    """Nearly always the newest clocks are alike, and nothing else has to be read."""
    clocks = [each.newest.clock_mhz for each in readings if each.newest.clock_mhz]
    return len(clocks) > LEAST_PEERS and min(clocks) <= CHIP_CLOCK * max(clocks)


def _peers_of(
    name: str, readings: Mapping[str, ChipHistory], working: Mapping[str, _Working | None]
) -> list[_Working]:
    """Other chips of the same model. Those that are not in use are none."""
    model = readings[name].newest.model
    return [
        each
        for other, each in working.items()
        if other != name and each is not None and readings[other].newest.model == model
    ]


def _working(readings: ChipHistory, newest: int | None = None) -> _Working | None:
    """None where it was not in use nearly all the time, or something needed was not read."""
    chips = readings.chips(newest)
    used = [each for each in chips if each.known and each.util is not None and each.util > CHIP_IN_USE]
    clocks = [each.clock_mhz for each in used if each.clock_mhz]
    if newest is None and not readings.is_whole:
        return None
    if len(clocks) < LEAST_SAMPLES or len(clocks) < CHIP_USED_SHARE * len(chips):
        return None
    if 2 * sum(not LIMITED.isdisjoint(each.throttled) for each in used) > len(used):
        return None
    return _Working(
        clock=median(clocks),
        use=median(each.util for each in used if each.util is not None),
        power=_median(each.power_w for each in used),
        limit=_median(each.power_limit_w for each in used),
        is_hot=2 * sum(not OVERHEATED.isdisjoint(each.throttled) for each in used) > len(used),
    )


def _is_slow(own: _Working, peers: Sequence[_Working]) -> bool:
    clock = median(each.clock for each in peers)
    agree = sum(abs(each.clock - clock) <= CHIP_AGREE * clock for each in peers)
    is_behind = (
        own.clock <= CHIP_CLOCK * clock
        and 2 * agree > len(peers)
        and own.use >= median(each.use for each in peers) - CHIP_USE_BEHIND
    )
    return is_behind and (own.is_hot or _draws_no_more(own, peers))


def _draws_no_more(own: _Working, peers: Sequence[_Working]) -> bool:
    """And nobody has lowered its limit."""
    power = _median(each.power for each in peers)
    limit = _median(each.limit for each in peers)
    if own.power is None or power is None or own.power > power:
        return False
    return own.limit is None or limit is None or own.limit >= (1 - CHIP_AGREE) * limit


def _median(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return median(known) if known else None


# ---------------------------------------------------------------------- what differs

Read = Callable[[Sequence[ReadChip]], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Difference:
    """``least`` apart, in the unit of the reading, and ``share`` of what the peers have: then it differs."""

    text: str
    unit: str
    read: Read
    least: float = 0.0
    share: float = 0.0

    def found(self, own: Sequence[ReadChip], peers: Sequence[Sequence[ReadChip]]) -> str:
        value, of_peers = self.read(own), _median(map(self.read, peers))
        if value is None or of_peers is None:
            return ""
        apart = abs(value - of_peers)
        if apart == 0 or apart < self.least or apart < self.share * of_peers:
            return ""
        return f"{self.text} {value:.0f}{self.unit}, peers {of_peers:.0f}{self.unit}"


def _middle(name: str) -> Read:
    def read(chips: Sequence[ReadChip]) -> float | None:
        return _median(getattr(each, name) for each in chips)

    return read


def _grown_errors(chips: Sequence[ReadChip]) -> float | None:
    known = [each.link_errors for each in chips if each.link_errors is not None]
    return float(max(0, known[-1] - known[0])) if len(known) > 1 else None


_DIFFERENCES: Final = (
    _Difference(text="clock", unit=" MHz", read=_middle("clock_mhz"), share=0.1),
    _Difference(text="temperature", unit=" C", read=_middle("temperature_c"), least=10),
    _Difference(text="power limit", unit=" W", read=_middle("power_limit_w"), share=0.1),
    _Difference(text="link errors", unit="", read=_grown_errors, least=10, share=1.0),
    _Difference(text="power", unit=" W", read=_middle("power_w"), share=0.15),
    _Difference(text="use", unit=" %", read=_middle("util"), least=10),
)


def differences(name: str, readings: Mapping[str, ChipHistory]) -> tuple[str, ...]:
    """What differs between this chip and the others of the job, by the newest readings; () if nothing does.

    Each as "clock 900 MHz, peers 1800 MHz"; what slows it down is "slowed by hw_thermal".
    """
    if name not in readings:
        return ()
    own = readings[name].chips(SAMPLES_OF_A_DIFFERENCE)
    peers = [each.chips(SAMPLES_OF_A_DIFFERENCE) for other, each in readings.items() if other != name]
    if not peers:
        return ()
    slowed = sorted(_slowed_by(own) - set[str]().union(*map(_slowed_by, peers)))
    found = [f"slowed by {', '.join(slowed)}"] if slowed else []
    return (*filter(None, (each.found(own, peers) for each in _DIFFERENCES)), *found)


def _slowed_by(chips: Sequence[ReadChip]) -> set[str]:
    reasons = {reason for each in chips for reason in each.throttled}
    return {reason for reason in reasons if 2 * sum(reason in each.throttled for each in chips) >= len(chips)}
