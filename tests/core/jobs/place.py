"""A node whose chips are reset together, and jobs with supervisors on it, in the words of tests."""

from dataclasses import replace
from typing import Any

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import JobSettings, Mode
from nodeagent.core.model import (
    Answer,
    Claims,
    Event,
    EventKind,
    JobBegun,
    JobEnded,
    JobPolicy,
    JobStage,
    JobView,
    Kind,
    Level,
    Operator,
    Peer,
    ResetMode,
    RunReported,
    RunReportKind,
)
from tests.core.build import active, held, ns, order, row
from tests.core.resets.ring import BROKEN, Ring, ring_catalog

JOB = "slurm:7.0"
OTHER = "slurm:8.0"
IN_PLACE = JobPolicy(in_place=True)
YIELDS = JobPolicy(in_place=True, yields=True)
BOTH = JobPolicy(in_place=True, reschedules=True)
MOVES = JobPolicy(reschedules=True)
WATCHED = JobPolicy()
MINE = "80C98002"
"""A fault of the application."""
CONTAINERS = "OOM_CGROUP"
"""A fault of some program on the node."""

OF_JOBS = tuple(kind for kind in EventKind if kind.value.startswith("job_"))


def job_catalog(
    mode: ResetMode = ResetMode.ON,
    *,
    how: Mode = Mode.RESCHEDULING,
    registered: bool = False,
    digest: str = "first",
    **resets: object,
) -> Catalog:
    base = ring_catalog(mode, **resets)
    rows = {
        **base.rows,
        MINE: row(MINE, user_induced=True),
        CONTAINERS: row(CONTAINERS, kind=Kind.HOST, vendor="linux", user_induced=True),
        "PROCESS_UNKILLABLE": row("process_unkillable", Level.PRE_SEPARATE_NPU, vendor="nodeagent"),
    }
    jobs = JobSettings(in_place_registered=registered)
    return replace(base, digest=digest, rows=rows, settings=replace(base.settings, mode=how, jobs=jobs))


class Place(Ring):
    """``chips`` npu0.. in one group, all free; with a ``hook`` that claims. A job begins a second after the
    daemon, so that what comes is heard.
    """

    def __init__(
        self,
        given: Catalog | None = None,
        chips: int = 2,
        later: Catalog | None = None,
        *,
        hook: bool = True,
    ) -> None:
        super().__init__(given or job_catalog(), chips, later=later, free=hook)
        self.numbers: dict[str, int] = {}
        self.nobody_holds()
        self.wait(1)

    def begin(self, policy: JobPolicy = IN_PLACE, job: str = JOB, *chips: str, **words: Any) -> None:
        words = {"peer": Peer(pid=70, start_time=1, uid=1000), "kind": "training", **words}
        self.do(JobBegun(job=job, policy=policy, devices=chips or ("npu0",), **words))

    def say(self, what: RunReportKind, job: str = JOB, run: int | None = None, **words: Any) -> list[Event]:
        """With its next number, and of the run that is known."""
        number = self.numbers[job] = self.numbers.get(job, 0) + 1
        run = self.job(job).run if run is None else run
        return self.do(RunReported(job=job, number=number, run=run, what=what, **words))

    def run(self, policy: JobPolicy = IN_PLACE, job: str = JOB, *chips: str) -> None:
        """It begins, its command starts, and holds its chips."""
        self.begin(policy, job, *chips)
        self.say(RunReportKind.STARTED, job)
        for chip in chips or ("npu0",):
            self.do(held(chip, job))
        self.wait(100)

    def fault(self, code: str = BROKEN, device: str = "npu0") -> None:
        """Its driver reports it, and the next poll shows it."""
        super().fault(code, device)
        self.do(active(code, device=device, begun_s=self.at_s, complete=False))

    def stop(self, job: str = JOB, *chips: str) -> None:
        """As it was asked to; a poll shows that nothing of it is left."""
        self.say(RunReportKind.STOPPED, job)
        for chip in chips or ("npu0",):
            self.do(held(chip, None))

    def leave(self, job: str = JOB, status: int | None = 0) -> None:
        self.do(JobEnded(job=job, why="its supervisor has left", status=status))

    def claim(self, chip: str, job: str, claimed: bool = True) -> None:
        self.do(Claims(device=chip, job=job, kind="training", claimed=claimed))

    def own(self, job: str, pid: int = 7) -> None:
        """The daemon finds that the process is below the job's supervisor."""
        known = self.job(job)
        assert known.peer is not None
        runs = known.stage is JobStage.RUNNING
        found = (f"{pid}/1",)
        self.do(
            JobBegun(
                job=job,
                kind=known.kind,
                peer=known.peer,
                run=known.run,
                is_running=runs,
                policy=known.policy,
                processes=found,
            )
        )

    def order(self, what: str, job: str = JOB) -> Answer:
        given: Operator = order(what, "node", only=job)
        outcome = self.engine.step(ns(self.at_s), given)
        self.events += outcome.events
        assert outcome.answer is not None
        return outcome.answer

    def job(self, name: str = JOB) -> JobView:
        (found,) = [job for job in self.engine.view().jobs if job.name == name]
        return found

    def stage(self, name: str = JOB) -> JobStage | None:
        return self.job(name).stage

    def job_events(self) -> list[tuple[str, str]]:
        """Kind and words of the events about jobs."""
        return self.emitted(*OF_JOBS)

    def hindered(self) -> tuple[str, ...]:
        (reset,) = self.engine.view().resets
        return reset.hindered
