"""Whose job a supervisor speaks for: real users in real cgroups, at the socket of the real daemon.

Slurm's job of one user has claimed chips and holds them. Another user has no job, and a subtree of cgroups of
his own, as systemd gives each user's manager one.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from nodeagent.client import EventKind, JobStage
from nodeagent.job import lines
from nodeagent.job.model import RunEvent
from tests.api.jobs.supervisor import (
    Supervisor,
    as_user,
    connected,
    delegated,
    entering,
    slurm_scope,
    slurm_step,
)
from tests.reset_unit.acting import Acting, acting

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]

OWNER, OTHER = 60002, 60001
JOB = os.getpid()
"""No other test on this machine has this number."""

PLACES = (
    "slurmstepd.scope/job_{job}/step_0",
    "system.slice/slurmstepd.scope/job_{job}/step_0/user",
    "slurm/uid_60001/job_{job}/step_0",
    "slurm/uid_60002/job_{job}/step_0",
    # What looks like the end of a line, and behind it the folder of the job itself.
    "x\u20280::/system.slice/test{job}_slurmstepd.scope/job_{job}/step_0",
    "x\r0::/system.slice/test{job}_slurmstepd.scope/job_{job}/step_0",
)


@asynccontextmanager
async def supervisor_of(npus: Acting, uid: int, *within: str) -> AsyncIterator[Supervisor]:
    """``within`` is the command that enters the cgroup, before the user is changed."""
    folder = npus.daemon.folder
    async with connected(Path("jobs.sock"), *within, *as_user(uid, folder)) as supervisor:
        yield supervisor


@contextmanager
def own_cgroup(place: str) -> Iterator[tuple[str, ...]]:
    """What the user makes himself in what is delegated to him, and enters by himself."""
    with delegated(OTHER) as folder:
        own = folder / place.format(job=JOB)
        makes = f'mkdir -p "{own}" && echo $$ > "{own}/cgroup.procs" && exec "$@"'
        user = ("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups")
        yield (*entering(folder), *user, "sh", "-c", makes, "sh")


async def claim(npus: Acting, *chips: str) -> None:
    control = npus.daemon.folder / "c.sock"
    said = await npus.daemon.command("claim", *chips, "--job", f"slurm:{JOB}", "--socket", control)
    assert said[0] == 0, said


@pytest.mark.parametrize("place", PLACES)
async def test_a_cgroup_of_his_own_makes_nobody_another_user_s_job(tmp_path: Path, place: str) -> None:
    """He is told nothing of the job, its claim is not supervised by him, and no reset waits for him."""
    async with acting(tmp_path, "2x910B") as npus:
        await npus.start()
        await npus.read_again()
        await claim(npus, "npu0", "npu1")
        folder = npus.daemon.folder
        folder.chmod(0o755)
        with slurm_scope(JOB), own_cgroup(place) as within:
            shell = ("sh", "-c", f'cd "{folder}" && exec "$@"', "sh")
            async with connected(Path("jobs.sock"), *shell, *within) as other:
                assert (await other.greet()).job == f"pid:{other.pid}"
                await other.begin_again(is_running=True)
                assert (await other.ask()).chips == ()
                jobs = {job.name: job for job in (await npus.snapshot()).jobs}
                assert jobs[f"pid:{other.pid}"].devices == ()
                assert (jobs[f"slurm:{JOB}"].stage, jobs[f"slurm:{JOB}"].devices) == (None, ("npu0", "npu1"))


async def test_the_job_of_a_user_is_supervised_by_him_alone(tmp_path: Path) -> None:
    """Slurm's folder names him; it gives him the folder of the step."""
    async with acting(tmp_path, "2x910B") as npus:
        await npus.start()
        await npus.read_again()
        await claim(npus, "npu0")
        with slurm_step(JOB, uid=OWNER) as within:
            async with supervisor_of(npus, OTHER, *within) as other:
                assert (await other.greet()).job == f"pid:{other.pid}"
            async with supervisor_of(npus, OWNER, *within) as owner:
                assert (await owner.greet()).job == f"slurm:{JOB}.0"
                await owner.begin_again()
                await owner.say(RunEvent.STARTED)
                assert [chip.name for chip in (await owner.ask()).chips] == ["npu0"]


async def test_a_job_has_one_user(tmp_path: Path) -> None:
    """The second version of cgroups does not name him: he is the first who comes."""
    async with acting(tmp_path, "2x910B") as npus:
        await npus.start()
        with slurm_scope(JOB) as within, slurm_scope(JOB, step=1) as within_another_step:
            async with supervisor_of(npus, OWNER, *within) as owner:
                await owner.begin()
                async with supervisor_of(npus, OTHER, *within_another_step) as other:
                    other.send(lines.SupervisorHello(pid=1, version="test"))
                    why = (await other.hear(lines.SupervisorRefused)).why
                assert why == (
                    f"slurm:{JOB}.1 is supervised by process {owner.pid} of user {OWNER}, and a job has one"
                    f" user: process {other.pid} is of user {OTHER}"
                )
                async with supervisor_of(npus, OWNER, *within_another_step) as second:
                    assert (await second.greet()).job == f"slurm:{JOB}.1"
        await npus.event(EventKind.JOB_BEGUN, "")
        jobs = {job.name: job.stage for job in (await npus.snapshot()).jobs}
        assert jobs[f"slurm:{JOB}.0"] is JobStage.RUNNING
        audit = await npus.daemon.command("audit", "--socket", npus.daemon.folder / "c.sock")
        assert "a job has one user" in audit[1]
