"""The job of a process by its cgroup: where the managers make theirs, and where anybody makes a folder of
that name. The folders are those of a tree such as ``/sys/fs/cgroup``.
"""

from pathlib import Path

import pytest

from nodeagent.system.job_cgroups import job_of, job_of_process
from tests.cgroups import make_folders

pytestmark = pytest.mark.root

CONTAINER = "3f1c9a7be02d" + "5" * 52
OUTER = "7" * 64
POD = "1d2c3b4a-0011-2233-4455-66778899aabb"
POD_IN_A_SLICE = POD.replace("-", "_")
UNIFIED = "0::"
LEGACY = "12:memory:"
BURSTABLE = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD_IN_A_SLICE}.slice"
MANAGER_OF_A_USER = "user.slice/user-60001.slice/user@60001.service"
USER = 60001

PLACES = [
    ("a login session", f"{UNIFIED}/user.slice/user-1000.slice/session-3.scope", ""),
    ("a service", f"{UNIFIED}/system.slice/sshd.service", ""),
    ("docker, cgroupfs", f"{LEGACY}/docker/{CONTAINER}", "container:3f1c9a7be02d"),
    ("docker, systemd", f"{UNIFIED}/system.slice/docker-{CONTAINER}.scope", "container:3f1c9a7be02d"),
    ("docker, in a site's slice", f"{UNIFIED}/jobs.slice/docker-{CONTAINER}.scope", "container:3f1c9a7be02d"),
    ("podman", f"{UNIFIED}/machine.slice/libpod-{CONTAINER}.scope/container", "container:3f1c9a7be02d"),
    ("podman, cgroupfs", f"{LEGACY}/libpod_parent/libpod-{CONTAINER}", "container:3f1c9a7be02d"),
    ("podman's monitor", f"{UNIFIED}/machine.slice/libpod-conmon-{CONTAINER}.scope", ""),
    ("nerdctl", f"{UNIFIED}/system.slice/nerdctl-{CONTAINER}.scope", "container:3f1c9a7be02d"),
    ("containerd by itself", f"{UNIFIED}/default/{CONTAINER}", "container:3f1c9a7be02d"),
    ("CRI-O", f"{UNIFIED}/system.slice/crio-{CONTAINER}.scope", "container:3f1c9a7be02d"),
    ("a container in a container", f"{UNIFIED}/docker/{OUTER}/docker/{CONTAINER}", "container:3f1c9a7be02d"),
    ("a pod, cgroupfs", f"{LEGACY}/kubepods/burstable/pod{POD}/{CONTAINER}", f"pod:{POD}"),
    ("a guaranteed pod, cgroupfs", f"{LEGACY}/kubepods/pod{POD}/{CONTAINER}", f"pod:{POD}"),
    (
        "a pod, systemd and containerd",
        f"{UNIFIED}/{BURSTABLE}/cri-containerd-{CONTAINER}.scope",
        f"pod:{POD}",
    ),
    (
        "a guaranteed pod, systemd and CRI-O",
        f"{UNIFIED}/kubepods.slice/kubepods-pod{POD_IN_A_SLICE}.slice/crio-{CONTAINER}.scope",
        f"pod:{POD}",
    ),
    (
        "a pod, named by containerd with colons",
        (
            f"{LEGACY}/system.slice/containerd.service/"
            f"kubepods-burstable-pod{POD_IN_A_SLICE}.slice:cri-containerd:{CONTAINER}"
        ),
        f"pod:{POD}",
    ),
    ("a static pod", f"{LEGACY}/kubepods/burstable/pod{'ab' * 16}/{CONTAINER}", f"pod:{'ab' * 16}"),
    ("a container in a pod", f"{LEGACY}/kubepods/pod{POD}/{OUTER}/docker/{CONTAINER}", f"pod:{POD}"),
    (
        "a pod in a node that is a container",
        (
            f"{UNIFIED}/docker/{OUTER}/kubelet.slice/kubelet-kubepods.slice/"
            f"kubelet-kubepods-pod{POD_IN_A_SLICE}.slice/cri-containerd-{CONTAINER}.scope"
        ),
        f"pod:{POD}",
    ),
    (
        "a pod in a node that is a container, cgroupfs",
        f"{LEGACY}/docker/{OUTER}/kubelet/kubepods/besteffort/pod{POD}/{CONTAINER}",
        f"pod:{POD}",
    ),
    ("Slurm, version 1", f"{LEGACY}/slurm/uid_1000/job_123/step_0/task_2", "slurm:123.0"),
    ("Slurm with the node's name", f"{LEGACY}/slurm_node7/uid_0/job_9/step_batch", "slurm:9.batch"),
    ("a Slurm job without a step", f"{LEGACY}/slurm/uid_1000/job_123", "slurm:123"),
    ("a part of a heterogeneous job", f"{LEGACY}/slurm/uid_1000/job_123/step_0+1/task_0", "slurm:123.0+1"),
    (
        "Slurm, version 2",
        f"{UNIFIED}/system.slice/slurmstepd.scope/job_123/step_4/user/task_0",
        "slurm:123.4",
    ),
    (
        "Slurm, version 2, with the node's name",
        f"{UNIFIED}/system.slice/node7_slurmstepd.scope/job_77/step_extern/user/task_special",
        "slurm:77.extern",
    ),
    ("Slurm in a site's slice", f"{UNIFIED}/batch.slice/slurmstepd.scope/job_1/step_0/user", "slurm:1.0"),
    (
        "slurmd in a pod",
        (
            f"{UNIFIED}/{BURSTABLE}/cri-containerd-{CONTAINER}.scope/"
            "system.slice/slurmstepd.scope/job_8/step_0/user/task_0"
        ),
        "slurm:8.0",
    ),
    (
        "a container that a Slurm job started",
        f"{UNIFIED}/system.slice/slurmstepd.scope/job_5/step_0/user/libpod-{CONTAINER}.scope",
        "slurm:5.0",
    ),
    ("no cgroup", f"{UNIFIED}/", ""),
]
"""Each folder is root's."""


def job_in(folder: Path, cgroup: str, owners: dict[str, int] | None = None, uid: int | None = None) -> str:
    make_folders(folder, f"{cgroup}\n", owners)
    return job_of(f"{cgroup}\n", folder, uid)


@pytest.mark.parametrize(("cgroup", "job"), [pytest.param(*rest, id=name) for name, *rest in PLACES])
def test_the_job_is_the_one_whose_manager_made_the_cgroup(tmp_path: Path, cgroup: str, job: str) -> None:
    assert job_in(tmp_path, cgroup) == job


@pytest.mark.parametrize(
    "path",
    [
        "slurmstepd.scope/job_7/step_0",
        "system.slice/slurmstepd.scope/job_7/step_0/user/task_0",
        "slurm/uid_60002/job_7/step_0",
        f"kubepods/pod{POD}/{CONTAINER}",
        f"kubepods.slice/kubepods-pod{POD_IN_A_SLICE}.slice/crio-{CONTAINER}.scope",
        f"docker/{CONTAINER}",
        f"user.slice/libpod-{CONTAINER}.scope/container",
    ],
)
@pytest.mark.parametrize(
    "above", [MANAGER_OF_A_USER, "user.slice", "system.slice/hook.service", f"docker/{OUTER}/init.scope"]
)
def test_the_name_counts_at_its_place_alone_whoever_made_the_folders(
    tmp_path: Path, above: str, path: str
) -> None:
    """Below another's folder any name may be made; also where root made it."""
    expected = f"container:{OUTER[:12]}" if above.startswith("docker/") else ""
    assert job_in(tmp_path, f"{UNIFIED}/{above}/{path}") == expected


@pytest.mark.parametrize(
    ("cgroup", "owned"),
    [
        (f"{UNIFIED}/system.slice/slurmstepd.scope/job_7/step_0/user", "slurmstepd.scope"),
        (f"{UNIFIED}/system.slice/slurmstepd.scope/job_7/step_0/user", "job_7"),
        (f"{UNIFIED}/system.slice/slurmstepd.scope/job_7/step_0/user", "step_0"),
        (f"{LEGACY}/slurm/uid_60002/job_7/step_0", "slurm"),
        (f"{LEGACY}/slurm/uid_60002/job_7/step_0", "uid_60002"),
        (f"{LEGACY}/slurm/uid_60002/job_7/step_0", "job_7"),
        (f"{LEGACY}/slurm/uid_60002/job_7/step_0", "step_0"),
        (f"{LEGACY}/slurm_mine/uid_60002/job_7/step_0", "slurm_mine"),
        (f"{LEGACY}/kubepods/burstable/pod{POD}/{CONTAINER}", "burstable"),
        (f"{LEGACY}/kubepods/burstable/pod{POD}/{CONTAINER}", f"pod{POD}"),
        (f"{UNIFIED}/batch.slice/docker-{CONTAINER}.scope", "batch.slice"),
        (f"{UNIFIED}/mine/{CONTAINER}", "mine"),
        (f"{UNIFIED}/docker/{CONTAINER}", CONTAINER),
    ],
)
def test_a_folder_that_is_not_root_s_proves_nothing(tmp_path: Path, cgroup: str, owned: str) -> None:
    assert job_in(tmp_path / "root's", cgroup) != ""
    assert job_in(tmp_path / "a user's", cgroup, {owned: USER}) == ""


def test_what_a_container_s_user_made_in_it_is_of_the_container(tmp_path: Path) -> None:
    """Root of a user namespace is another user here."""
    cgroup = f"{UNIFIED}/system.slice/docker-{CONTAINER}.scope/system.slice/slurmstepd.scope/job_7/step_0"
    assert job_in(tmp_path / "root's", cgroup) == "slurm:7.0"
    assert job_in(tmp_path / "a user's", cgroup, {"job_7": 100_000}) == "container:3f1c9a7be02d"


def test_a_folder_that_others_may_write_in_proves_nothing(tmp_path: Path) -> None:
    cgroup = f"{LEGACY}/slurm/uid_1000/job_123/step_0"
    assert job_in(tmp_path, cgroup) == "slurm:123.0"
    (tmp_path / "memory/slurm/uid_1000").chmod(0o777)
    assert job_of(f"{cgroup}\n", tmp_path) == ""


def test_slurm_gives_the_folder_of_a_step_to_the_user_of_the_job(tmp_path: Path) -> None:
    """``xcgroup_create_hierarchy`` of src/plugins/cgroup/v1/xcgroup.c."""
    cgroup = f"{LEGACY}/slurm/uid_60001/job_7/step_0/task_0"
    assert job_in(tmp_path, cgroup, {"step_0": 60001, "task_0": 60001}) == "slurm:7.0"


@pytest.mark.parametrize("ends_a_line", ["\r", "\v", "\f", "\x1c", "\x85", "\u2028"])
def test_a_line_ends_where_the_kernel_ends_it(tmp_path: Path, ends_a_line: str) -> None:
    """A user may give a folder of his own any name but one with a line feed (``cgroup_mkdir`` of
    kernel/cgroup/cgroup.c): below it he may repeat the path of another's job, whose folders are root's.
    """
    job = "system.slice/slurmstepd.scope/job_7/step_0"
    make_folders(tmp_path, f"{UNIFIED}/{job}")
    forged = f"{UNIFIED}/{MANAGER_OF_A_USER}/x{ends_a_line}{UNIFIED}/{job}"
    assert job_in(tmp_path, forged, {f"x{ends_a_line}{UNIFIED}": USER}) == ""


def test_a_job_of_slurm_is_its_user_s_alone(tmp_path: Path) -> None:
    cgroup = f"{LEGACY}/slurm/uid_60002/job_7/step_0"
    assert [job_in(tmp_path, cgroup, uid=uid) for uid in (60001, 60002, 0)] == ["", "slurm:7.0", ""]


def test_the_hierarchy_that_names_a_job_is_found_among_many(tmp_path: Path) -> None:
    many = f"5:cpu,cpuacct:/\n4:memory:/slurm/uid_0/job_7/step_1\n1:name=systemd:/docker/{CONTAINER}\n0::/\n"
    make_folders(tmp_path, many)
    assert job_of(many, tmp_path) == "slurm:7.1"


def test_a_hierarchy_is_looked_at_where_it_is_mounted(tmp_path: Path) -> None:
    """Version 2 beside version 1 lies in ``unified``; a folder of that name elsewhere proves nothing."""
    cgroup = f"{UNIFIED}/system.slice/slurmstepd.scope/job_7/step_0"
    make_folders(tmp_path, cgroup)
    assert job_of(cgroup, tmp_path) == "slurm:7.0"
    (tmp_path / "unified").mkdir()
    assert job_of(cgroup, tmp_path) == ""
    make_folders(tmp_path / "unified", cgroup)
    assert job_of(cgroup, tmp_path) == "slurm:7.0"


@pytest.mark.parametrize(
    "text",
    [
        f"0::/../../system.slice/docker-{CONTAINER}.scope",
        f"0::/system.slice/../system.slice/docker-{CONTAINER}.scope",
        "garbage",
        "1:",
        "::::",
        "",
    ],
)
def test_what_lies_outside_of_what_the_daemon_sees_has_no_name(tmp_path: Path, text: str) -> None:
    """So a process outside of the cgroup namespace is shown (cgroup_namespaces(7))."""
    make_folders(tmp_path, f"0::/system.slice/docker-{CONTAINER}.scope")
    assert job_of(text, tmp_path) == ""


def test_where_no_folders_of_cgroups_are_seen_there_is_no_name(tmp_path: Path) -> None:
    (tmp_path / "proc/12").mkdir(parents=True)
    (tmp_path / "proc/12/cgroup").write_text(f"{LEGACY}/slurm/uid_0/job_7/step_1\n")
    assert job_of_process(tmp_path / "proc", 12) == ""
    make_folders(tmp_path / "sys/fs/cgroup", f"{LEGACY}/slurm/uid_0/job_7/step_1\n")
    assert job_of_process(tmp_path / "proc", 12) == "slurm:7.1"
