"""``[jobs]`` of nodeagent.toml: whether and where supervisors of jobs connect, and how long jobs may take.

``[jobs.defaults]`` and ``[jobs.limits]`` are for the supervisors, and sent to them as they stand here.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from nodeagent.core.catalog.settings import SECOND_NS, JobSettings
from nodeagent.job.policy import keys
from nodeagent.toml.quantities import duration
from nodeagent.toml.texts import OptionalPath

SOCKET_NAME: Final = "jobs.sock"

NEEDS_PLACEMENTS: Final = "needs placements beside it, or each job that sets none is refused"

StopTimeout = Annotated[int, duration(5 * SECOND_NS, 600 * SECOND_NS, '"5s" to "10m"')]
HealTimeout = Annotated[int, duration(30 * SECOND_NS, 3600 * SECOND_NS, '"30s" to "1h"')]
Policies = Annotated[
    Mapping[str, Annotated[str, Meta(max_length=256)]],
    Meta(max_length=64, description="a table of policy keys, each with its value as text in quotes"),
]


ConsumerName = Annotated[
    str,
    Meta(
        max_length=128,
        pattern=r"\A[^\x00-\x1f\x7f-\x9f]*\Z",
        description='the name of a consumer, such as "slurm", or ""',
    ),
]


class JobsConfig(Struct, frozen=True, kw_only=True):
    """``[jobs]``. ``socket`` "" is ``jobs.sock`` beside ``agent.socket``.

    ``accept`` claimed: only jobs that a hook has claimed a chip for. ``in_place`` registered: chips that only
    jobs use which may be stopped and run again are judged as in mode graceful. ``leave_after``: a job leaves
    a node that is out of service only once this consumer has acknowledged why.
    """

    enabled: bool = True
    socket: OptionalPath = ""
    accept: Literal["everybody", "claimed"] = "everybody"
    in_place: Literal["as-mode", "registered"] = "as-mode"
    stop_timeout_ns: StopTimeout = field(default=60 * SECOND_NS, name="stop_timeout")
    leave_after: ConsumerName = ""
    heal_timeout_ns: HealTimeout = field(default=600 * SECOND_NS, name="heal_timeout")
    defaults: Policies = field(default_factory=dict)
    limits: Policies = field(default_factory=dict)

    def check(self, report: Callable[[tuple[str, str], str], None]) -> None:
        """What is no key of a policy, or has no such value or limit: ``report((table, key), reason)``."""
        for table, policies in (("defaults", self.defaults), ("limits", self.limits)):
            for key, text in policies.items():
                wrong = keys.problem(key, text, as_limit=table == "limits")
                if wrong is not None:
                    report((table, key), wrong.removeprefix(f"{key}: "))
        if self.defaults.get("unconditional", "").lower() == "true" and "placements" not in self.defaults:
            report(("defaults", "unconditional"), NEEDS_PLACEMENTS)

    def settings(self) -> JobSettings:
        """What the core decides by."""
        return JobSettings(
            stop_timeout_ns=self.stop_timeout_ns,
            heal_timeout_ns=self.heal_timeout_ns,
            in_place_registered=self.in_place == "registered",
        )
