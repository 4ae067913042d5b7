"""One chip: whether its use is flat, and whether it is dead, and since when.

Use alone does not show it: some chips idle in a hang, others show full use at a third of the power. So
power or traffic over the links must agree, each against what was usual while the run was healthy.
"""

from collections import deque
from collections.abc import Sequence
from enum import Enum
from itertools import islice
from statistics import median
from typing import Final, NamedTuple

from nodeagent.job.hang.rates import UsualValue
from nodeagent.job.hang.settings import SAMPLES_OF_A_MEAN, HangSettings
from nodeagent.job.sample import ChipSample

FLAT_VARIANCE: Final = 1.0
FLAT_SHIFT: Final = 1.0
FLAT_SPREAD: Final = 2.0
"""The spread of single samples, where the beginning of what is flat is looked for."""

IDLE_USE: Final = 5.0
IDLE_POWER: Final = 0.7
HIGH_POWER: Final = 0.5
HIGH_TRAFFIC: Final = 0.01
LEAST_TRAFFIC_PER_S: Final = 100_000.0
"""Where less is usual, the links show nothing."""

MILD: Final = frozenset({"NONE", "JOB_STRATEGY"})
"""Any other handling makes it a case of the fault that it is for."""


class Pulse(Enum):
    LIVES = "lives"
    UNKNOWN = "unknown"
    IDLE = "idle"
    """Dead if its rank uses no CPU."""

    HIGH = "high"
    """Dead: in use by what it reports, and neither its power nor its traffic shows any work."""


class _Reading(NamedTuple):
    began_s: float
    use: float
    power: float | None
    traffic: float | None


class ChipWatch:
    """``since_s`` of IDLE and HIGH: the first sample of it; ``flat_since_s``: of flat use alone.
    ``readable``: the newest sample had its use.
    """

    def __init__(self, name: str, settings: HangSettings) -> None:
        self.name = name
        self._samples = settings.samples_of_window
        self._delay = 2 * self._samples
        self._readings = deque[_Reading](maxlen=2 * self._samples)
        self._power = UsualValue(self._delay)
        self._traffic = UsualValue(self._delay)
        self._before: ChipWatch | None = None
        self.readable = False
        self.is_flat = False
        self.flat_since_s: float | None = None
        self.varies = False
        self.level = 0.0
        self.pulse = Pulse.UNKNOWN
        self.since_s: float | None = None

    def measured(self, began_s: float, chip: ChipSample | None, traffic: float | None) -> None:
        """``chip`` is None where the daemon did not report it. What is not readable changes nothing else."""
        self.readable = chip is not None and chip.known and chip.util is not None
        if chip is None or not chip.known or chip.util is None:
            self.varies = False
            return
        self._readings.append(_Reading(began_s, chip.util, chip.power_w, traffic))
        self._judge_use()
        self._judge_pulse()

    def follows(self, before: "ChipWatch") -> None:
        """What was usual in the run before is so in this one, until it has shown what is."""
        self._before = before
        before._before = None

    @property
    def has_worked(self) -> bool:
        """It has shown what is usual."""
        return self._power.median() is not None or self._traffic.median() is not None

    @property
    def is_used(self) -> bool:
        """Whether it is in use, by what can be read now."""
        return self.readable and (self.varies or self.level > IDLE_USE)

    def learn(self) -> None:
        """The newest sample is of a healthy run. What is usual is what is so while the chip is in use."""
        if self.readable and self._readings[-1].use > IDLE_USE:
            newest = self._readings[-1]
            if newest.power is not None:
                self._power.learn(newest.power)
            if newest.traffic is not None:
                self._traffic.learn(newest.traffic)

    def doubt(self) -> None:
        self._power.doubt()
        self._traffic.doubt()

    def unlearn(self) -> None:
        self._power, self._traffic = UsualValue(self._delay), UsualValue(self._delay)

    def _judge_use(self) -> None:
        uses = [each.use for each in self._readings]
        newest, before = uses[-self._samples :], uses[: -self._samples]
        self.level = median(newest)
        is_steady = _variance(newest) <= FLAT_VARIANCE
        self.varies = len(newest) >= SAMPLES_OF_A_MEAN and not is_steady
        self.is_flat = (
            is_steady and len(before) == self._samples and abs(self.level - median(before)) <= FLAT_SHIFT
        )
        if not self.is_flat:
            self.flat_since_s = None
        elif self.flat_since_s is None:
            self.flat_since_s = self._beginning(None, None)

    def _judge_pulse(self) -> None:
        if not self.is_flat:
            has_lived = self.varies or len(self._readings) == 2 * self._samples
            self.pulse = Pulse.LIVES if has_lived else Pulse.UNKNOWN
            self.since_s = None
            return
        newest = self._readings[-1]
        is_idle = self.level <= IDLE_USE
        most_power = self._most_power(newest, IDLE_POWER if is_idle else HIGH_POWER)
        most_traffic = None if is_idle else self._most_traffic(newest)
        if most_power is None and most_traffic is None and not is_idle:
            self.pulse = Pulse.UNKNOWN
        elif self._mean_is_within(most_power, most_traffic):
            self.pulse = Pulse.IDLE if is_idle else Pulse.HIGH
        else:
            self.pulse = Pulse.LIVES
        if self.pulse in (Pulse.LIVES, Pulse.UNKNOWN):
            self.since_s = None
        elif self.since_s is None:
            self.since_s = self._beginning(most_power, most_traffic)

    def _most_power(self, newest: _Reading, share: float) -> float | None:
        usual = self._usual_power()
        return None if newest.power is None or usual is None else share * usual

    def _usual_power(self) -> float | None:
        usual = self._power.median()
        return self._before._power.median() if usual is None and self._before is not None else usual

    def _usual_traffic(self) -> float | None:
        usual = self._traffic.median()
        return self._before._traffic.median() if usual is None and self._before is not None else usual

    def _most_traffic(self, newest: _Reading) -> float | None:
        usual = self._usual_traffic()
        if newest.traffic is None or usual is None or usual < LEAST_TRAFFIC_PER_S:
            return None
        return HIGH_TRAFFIC * usual

    def _mean_is_within(self, most_power: float | None, most_traffic: float | None) -> bool:
        window = list(islice(self._readings, self._samples, None))
        powers = [each.power for each in window if each.power is not None]
        traffics = [each.traffic for each in window if each.traffic is not None]
        return (most_power is None or sum(powers) <= most_power * len(powers)) and (
            most_traffic is None or sum(traffics) <= most_traffic * len(traffics)
        )

    def _beginning(self, most_power: float | None, most_traffic: float | None) -> float:
        """Back from the newest sample, as long as each shows the same."""
        since_s = self._readings[-1].began_s
        for each in reversed(self._readings):
            if (
                abs(each.use - self.level) > FLAT_SPREAD
                or (most_power is not None and each.power is not None and each.power > most_power)
                or (most_traffic is not None and each.traffic is not None and each.traffic > most_traffic)
            ):
                break
            since_s = each.began_s
        return since_s


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum([(each - mean) ** 2 for each in values]) / len(values)
