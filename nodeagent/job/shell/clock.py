"""The one clock of the supervisor: CLOCK_BOOTTIME, which goes on while the machine sleeps."""

import time

from nodeagent.job.model import SECOND_NS


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def seconds(at_ns: int) -> float:
    return at_ns / SECOND_NS
