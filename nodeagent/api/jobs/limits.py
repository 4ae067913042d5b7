"""How much of the daemon the supervisors of jobs may use at once: every such number, with its reason.

Each user of the node may connect, under as many numbers as he has subordinate ones (subuid(5)). So those
whose cgroup proves a job are counted apart from all others: no user can make such a job for himself, and it
has one user.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.api.access.limits import Limit, RateLimit, a_day, a_second
from nodeagent.core.model import RunReportKind
from nodeagent.core.state.limits import MAX_JOBS, MAX_JOBS_OF_USER, MAX_JOBS_UNPROVEN

SUPERVISORS: Final = Limit(what="supervisors", each=MAX_JOBS_OF_USER, total=MAX_JOBS, kept=0)
"""As many as the core keeps jobs. A node has sixteen chips at most, and containers may all be of one user."""

UNPROVEN: Final = Limit(
    what="supervisors after the first of each job that a cgroup proves",
    each=MAX_JOBS_OF_USER,
    total=MAX_JOBS_UNPROVEN,
    kept=0,
)
"""The others find a place whatever these do."""

CONNECTION_RATE: Final = RateLimit(each=a_second(20, burst_s=2.0), total=a_second(100, burst_s=2.0))
"""A supervisor connects once in the life of the daemon. All of a user begin at once where a job has many."""

LINE_RATE: Final = RateLimit(each=a_second(20, burst_s=2.0), total=a_second(200, burst_s=2.0))
"""Lines of one supervisor. It asks for its chips every ten seconds. A faster one is not read for a while."""

INPUT_RATE: Final = RateLimit(each=a_second(2, burst_s=10.0), total=a_second(20, burst_s=10.0))
"""What goes to the disk, of one supervisor. A command that fails at once is run again after a second."""

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB

PROVEN_BYTES: Final = RateLimit(
    each=a_day(8 * _MIB, at_once=1 * _MIB), total=a_day(64 * _MIB, at_once=4 * _MIB)
)
UNPROVEN_BYTES: Final = RateLimit(
    each=a_day(8 * _MIB, at_once=256 * _KIB), total=a_day(16 * _MIB, at_once=1 * _MIB)
)
"""What goes to the disk. A user with sixteen jobs of ten minutes on the node leaves 7 MiB a day; a hang with
its evidence takes 40 KiB.
"""

INPUT_BYTES: Final = 2 * _KIB
"""What an input and its event take on the disk without the texts that a supervisor chose."""

TEXT_COPIES: Final = 2
"""A text is in the input and in the event."""

MAX_WAIT_S: Final = 20.0
"""The longest wait for bytes of a report that moves a job. It must come: a chip may wait for it, and its
supervisor gives a daemon up that does not answer for 30 s.
"""

HELLO_LIMIT_S: Final = 5.0
BEGIN_LIMIT_S: Final = 10.0
"""A supervisor begins as soon as it is welcome. One that does not takes the place of another."""

OWN_JOBS_LIMIT_S: Final = 10.0
"""A command that asks for the jobs of its user reads them at once."""

MAX_UNREAD_BYTES: Final = 128 * 1024
"""Lines that a supervisor has not read, beyond what the kernel keeps. Each is a few hundred bytes."""

MAX_WHY_CHARACTERS: Final = 512
MAX_EVIDENCE: Final = 16

MAX_EVIDENCE_CHARACTERS: Final[Mapping[RunReportKind, int]] = {
    RunReportKind.SUSPENDED: 1024,
    RunReportKind.EXITED: 256,
    RunReportKind.SLOW: 256,
    RunReportKind.KEEPS_UP: 64,
}
"""The length of each value, by what is reported: of a hang that is confirmed, of a failure its class and
line, of a slow rank what was measured. Other reports have none. One event holds all of it, and goes to every
subscriber.
"""
