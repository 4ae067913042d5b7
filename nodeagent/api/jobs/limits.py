"""How much of the daemon the supervisors of jobs may use at once: every such number, with its reason."""

from typing import Final

from nodeagent.api.access.limits import Limit, RateLimit

SUPERVISORS: Final = Limit(what="supervisors", each=32, total=64, kept=0)
"""As many as the core keeps jobs. A node has sixteen chips at most, and containers may all be of one user."""

CONNECTION_RATE: Final = RateLimit(each=20, total=100, burst_s=2.0)
"""A supervisor connects once in the life of the daemon. All of a user begin at once where a job has many."""

LINE_RATE: Final = RateLimit(each=20, total=200, burst_s=2.0)
"""Lines of one supervisor. It asks for its chips every ten seconds. Who is faster is not read for a while."""

INPUT_RATE: Final = RateLimit(each=2, total=20, burst_s=10.0)
"""What goes to the disk, of one supervisor. A command that fails at once is run again after a second."""

HELLO_LIMIT_S: Final = 5.0

MAX_UNREAD_BYTES: Final = 128 * 1024
"""Lines that a supervisor has not read, beyond what the kernel keeps. Each is a few hundred bytes."""

MAX_WHY_CHARACTERS: Final = 512
MAX_EVIDENCE: Final = 16
MAX_EVIDENCE_CHARACTERS: Final = 1024
"""The length of each value: one event holds all of them, and goes to every subscriber."""
