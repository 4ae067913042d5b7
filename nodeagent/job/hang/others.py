"""The processes that are neither ranks nor launchers: writers of checkpoints, compilers, loader workers.

One of them at work is work of the run. Those that come and go, as compilers do, count as one together.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from nodeagent.job.hang.rates import Key, Rate, key_of
from nodeagent.job.hang.settings import SAMPLES_OF_A_MEAN, Settings
from nodeagent.job.sample import ProcessSample

BUSY_BYTES_PER_S: Final = 1_000_000.0
BUSY_CPU_S_PER_MIN: Final = 5.0


class _Work:
    """The work of one process, or of several, in the newest samples. Without a sample there was no work."""

    __slots__ = ("bytes", "cpu", "samples")

    def __init__(self) -> None:
        self.bytes = deque[float](maxlen=SAMPLES_OF_A_MEAN)
        self.cpu = deque[float](maxlen=SAMPLES_OF_A_MEAN)
        self.samples = 0

    def add(self, bytes_per_s: float, cpu_s_per_min: float) -> None:
        self.bytes.append(bytes_per_s)
        self.cpu.append(cpu_s_per_min)
        self.samples += 1

    def why(self) -> str:
        bytes_per_s = sum(self.bytes) / SAMPLES_OF_A_MEAN
        cpu = sum(self.cpu) / SAMPLES_OF_A_MEAN
        if bytes_per_s >= BUSY_BYTES_PER_S:
            return f"moves {bytes_per_s / 1e6:.1f} MB/s"
        return f"uses {cpu:.0f} s of CPU a minute" if cpu >= BUSY_CPU_S_PER_MIN else ""


class Others:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._works: dict[Key, _Work] = {}
        self._short_lived = _Work()

    def measured(self, others: Iterable[ProcessSample], rates: Mapping[Key, Rate]) -> str:
        """Why the clock stops because of them; "" where it does not."""
        works: dict[Key, _Work] = {}
        young_bytes = young_cpu = 0.0
        reasons = list[str]()
        for process in others:
            key = key_of(process)
            works[key] = work = self._works.get(key) or _Work()
            rate = rates.get(key)
            if rate is None:
                continue
            if rate.bytes is None or rate.cpu is None:
                reasons.append(f"process {key.pid} cannot be read")
                continue
            work.add(rate.bytes, rate.cpu)
            if rate.is_new or 0 < work.samples <= SAMPLES_OF_A_MEAN:
                young_bytes += rate.bytes
                young_cpu += rate.cpu
            if why := work.why():
                reasons.append(f"process {key.pid} {why}")
        self._works = works
        if rates:
            self._short_lived.add(young_bytes, young_cpu)
        if not reasons and (why := self._short_lived.why()):
            reasons.append(f"what begins and ends {why}")
        return reasons[0] if reasons else ""
