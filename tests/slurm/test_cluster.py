"""The cluster of the other tests is a real one: it runs jobs, remembers, and leaves nothing."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from nodeagent.system.job_cgroups import job_of_process
from tests.slurm.cluster import HAS_CGROUPS, Cluster, cluster
from tests.waiting import wait_until

pytestmark = pytest.mark.root

NOBODY = 65534


def test_a_job_runs_on_two_nodes_and_each_step_has_a_cgroup_of_its_name(three_nodes: Cluster) -> None:
    script = "srun -N2 -n2 --label cat /proc/self/cgroup; srun -N2 -n2 --label sh -c 'echo $SLURMD_NODENAME'"
    job = three_nodes.submit(script, "-N2")
    three_nodes.comes(lambda: three_nodes.job(job)["JobState"] == "COMPLETED", "its end")

    said = three_nodes.output(job).splitlines()
    assert {"0: n1", "1: n2"} <= set(said)
    if HAS_CGROUPS:
        steps = {line.partition("freezer:")[2] for line in said if "freezer:" in line}
        assert steps == {f"/slurm_{node}/uid_0/job_{job}/step_0" for node in ("n1", "n2")}


@pytest.mark.skipif(not HAS_CGROUPS, reason="cgroups' first version is not mounted: steps have no groups")
def test_the_cgroup_of_a_step_is_its_user_s_and_names_the_job_for_him_alone() -> None:
    """Slurm gives it to him; all above it is root's."""
    with TemporaryDirectory(prefix="nodeagent-slurm-") as folder:
        Path(folder).chmod(0o755)  # the user has to reach the script that slurmd puts there
        with cluster(Path(folder) / "slurm") as made:
            user = (f"--uid={NOBODY}", f"--gid={NOBODY}", "--chdir=/", "--output=/dev/null")
            job = made.submit("sleep 1000", *user)
            step = f"uid_{NOBODY}/job_{job}/step_batch"
            (cgroup,) = wait_until(lambda: list(Path("/sys/fs/cgroup/freezer").glob(f"slurm_*/{step}")))
            pid, *_ = wait_until(lambda: (cgroup / "cgroup.procs").read_text().split())
            owners = [each.stat().st_uid for each in (cgroup, *cgroup.parents[:3])]
            assert owners == [NOBODY, 0, 0, 0]
            names = [job_of_process(Path("/proc"), int(pid), uid) for uid in (None, NOBODY, NOBODY - 1)]
            assert names == [f"slurm:{job}.batch", f"slurm:{job}.batch", ""]


def test_slurmctld_remembers_a_drained_node_over_its_restart(three_nodes: Cluster) -> None:
    three_nodes.run("scontrol", "update", "nodename=n2", "state=drain", "reason=a person's own words")
    three_nodes.end("controller")
    three_nodes.start_controller()

    assert three_nodes.reason("n2") == "a person's own words"
    three_nodes.comes(lambda: three_nodes.state("n2") == ["IDLE", "DRAIN"], "its slurmd is there again")
    three_nodes.comes(lambda: three_nodes.state("n1") == ["IDLE"], "the others are idle")


def test_nothing_is_left_of_a_cluster_nor_of_its_jobs(tmp_path: Path) -> None:
    with cluster(tmp_path / "slurm") as made:
        job = made.submit("trap '' TERM; touch began; sleep 1000 & wait; sleep 1000")
        made.comes((made.folder / "began").exists, f"job {job}")
        assert len(made.pids()) > len(made.running)

    made.comes(lambda: not made.pids(), "the end of all")
