"""A bad value, whoever gave it, keeps the command from running, and is named with its source."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nodeagent.job.model import ExitStatus
from tests.reset_unit.acting import acting
from tests.stories.jobs import Job, supervised

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]


def by_flag(job: Job) -> str:
    job.policy = ("--hang-row", "4")
    return "hang-row (--hang-row): a whole number from 1 to 3, not '4'"


def by_environment(job: Job) -> str:
    job.env = {"MA_HANG_DETECT_TIME": "9"}
    return "MA_HANG_DETECT_TIME (environment): a whole number from 10 to 720 (minutes), not '9'"


def by_annotation(job: Job) -> str:
    annotations = job.folder / "annotations"
    annotations.write_text('app="llama"\nfault-tolerance/job-retry-num="129"\n')
    job.policy = ("--annotations", str(annotations))
    return f"fault-tolerance/job-retry-num ({annotations}, line 2): a whole number from 1 to 128, not '129'"


def by_site(job: Job) -> str:
    """The daemon takes it: it is wrong only beside what slurm.conf says, which the supervisor reads."""
    job.node.daemon.sections = ("[jobs.defaults]", 'grace = "45s"')
    conf = job.folder / "slurm.conf"
    conf.write_text("KillWait=45\n")
    job.env = {"SLURM_JOB_ID": "7", "SLURM_CONF": str(conf)}
    right = "below the 45 s after which the scheduler kills (KillWait), not '45s'"
    return f"grace (the site's [jobs.defaults] grace): {right}"


@pytest.mark.parametrize("given", [by_flag, by_environment, by_annotation, by_site])
async def test_a_bad_value_is_refused_before_the_command_begins(
    tmp_path: Path, given: Callable[[Job], str]
) -> None:
    async with supervised(tmp_path, "2x910B") as job:
        job.program = ("nodeagent.cli", "job")
        job.trained = ("touch", job.folder / "begun")
        said = given(job)
        await job.node.kill()
        await job.node.start()
        await job.start()

        assert await job.status() == ExitStatus.BAD_POLICY
        assert job.err == f"nodeagent-job: {said}\n"
        assert not (job.folder / "begun").exists()
        assert job.events() == []


async def test_a_default_of_the_site_that_is_never_right_is_refused_by_the_daemon(tmp_path: Path) -> None:
    async with acting(tmp_path, "2x910B") as node:
        await node.start()
        await node.kill()
        node.daemon.sections = ("[jobs.defaults]", 'grace = "2h"')
        await node.daemon.spawn()

        assert await node.daemon.ended() == ExitStatus.BAD_POLICY
        assert "jobs.defaults.grace" in node.daemon.log
        assert "a time from 0s to 1h, as 90s, 5m or 2h, not '2h'" in node.daemon.log
