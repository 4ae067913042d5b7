"""Who holds a device: processes from trees such as procfs gives, and from the real one."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from nodeagent.drivers.shared.holders import cpu_time_s, holder_of
from nodeagent.system.processes import job_of
from nodeagent.wire import Holder

CONTAINER = "3f1c9a7be02d" + "5" * 52
POD = "1d2c3b4a-0011-2233-4455-66778899aabb"
POD_IN_A_SLICE = POD.replace("-", "_")
UNIFIED = "0::"
LEGACY = "12:memory:"

PLACES = [
    ("a login session", f"{UNIFIED}/user.slice/user-1000.slice/session-3.scope", ""),
    ("a service", f"{UNIFIED}/system.slice/sshd.service", ""),
    ("docker, cgroupfs", f"{LEGACY}/docker/{CONTAINER}", "container:3f1c9a7be02d"),
    ("docker, systemd", f"{UNIFIED}/system.slice/docker-{CONTAINER}.scope", "container:3f1c9a7be02d"),
    ("podman", f"{UNIFIED}/machine.slice/libpod-{CONTAINER}.scope/container", "container:3f1c9a7be02d"),
    (
        "podman without root",
        f"{UNIFIED}/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{CONTAINER}.scope",
        "container:3f1c9a7be02d",
    ),
    ("podman's monitor", f"{UNIFIED}/machine.slice/libpod-conmon-{CONTAINER}.scope", ""),
    ("nerdctl", f"{UNIFIED}/system.slice/nerdctl-{CONTAINER}.scope", "container:3f1c9a7be02d"),
    ("containerd by itself", f"{UNIFIED}/default/{CONTAINER}", "container:3f1c9a7be02d"),
    ("CRI-O", f"{UNIFIED}/system.slice/crio-{CONTAINER}.scope", "container:3f1c9a7be02d"),
    (
        "a container in a container",
        f"{UNIFIED}/docker/{'7' * 64}/docker/{CONTAINER}",
        "container:3f1c9a7be02d",
    ),
    ("a pod, cgroupfs", f"{LEGACY}/kubepods/burstable/pod{POD}/{CONTAINER}", f"pod:{POD}"),
    ("a guaranteed pod, cgroupfs", f"{LEGACY}/kubepods/pod{POD}/{CONTAINER}", f"pod:{POD}"),
    (
        "a pod, systemd and containerd",
        (
            f"{UNIFIED}/kubepods.slice/kubepods-besteffort.slice/"
            f"kubepods-besteffort-pod{POD_IN_A_SLICE}.slice/cri-containerd-{CONTAINER}.scope"
        ),
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
    (
        "a pod in a node that is a container",
        (
            f"{UNIFIED}/docker/{'7' * 64}/kubelet.slice/kubelet-kubepods.slice/"
            f"kubelet-kubepods-pod{POD_IN_A_SLICE}.slice/cri-containerd-{CONTAINER}.scope"
        ),
        f"pod:{POD}",
    ),
    ("Slurm, version 1", f"{LEGACY}/slurm/uid_1000/job_123/step_0/task_2", "slurm:123.0"),
    ("Slurm with the node's name", f"{LEGACY}/slurm_node7/uid_0/job_9/step_batch", "slurm:9.batch"),
    ("a Slurm job without a step", f"{LEGACY}/slurm/uid_1000/job_123", "slurm:123"),
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
    (
        "a container that a Slurm job started",
        f"{UNIFIED}/system.slice/slurmstepd.scope/job_5/step_0/user/libpod-{CONTAINER}.scope",
        "slurm:5.0",
    ),
    (
        "another root of cgroups",
        f"{UNIFIED}/../../system.slice/docker-{CONTAINER}.scope",
        "container:3f1c9a7be02d",
    ),
    ("no cgroup", "", ""),
]


@pytest.mark.parametrize(("cgroup", "job"), [pytest.param(*rest, id=name) for name, *rest in PLACES])
def test_the_job_is_read_from_the_cgroup(cgroup: str, job: str) -> None:
    assert job_of(cgroup + "\n") == job


def test_the_hierarchy_that_names_a_job_is_found_among_many() -> None:
    many = f"5:cpu,cpuacct:/\n4:memory:/slurm/uid_0/job_7/step_1\n1:name=systemd:/docker/{CONTAINER}\n0::/\n"
    assert job_of(many) == "slurm:7.1"


def process(procfs: Path, pid: int, *, command: str = "python3", start_time: int = 4711) -> Path:
    folder = procfs / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stat").write_text(f"{pid} ({command}) S 1 {'0 ' * 17}{start_time} 0 0\n")
    if not (folder / "cgroup").exists():
        (folder / "cgroup").write_text("0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n")
    return folder


def test_a_holder_has_start_command_and_job(tmp_path: Path) -> None:
    process(tmp_path, 1234)
    assert holder_of(tmp_path, 1234) == Holder(pid=1234, start_time=4711, command="python3", job="slurm:42.0")


def test_a_command_may_look_like_the_fields_behind_it(tmp_path: Path) -> None:
    process(tmp_path, 1, command="a) S 9 (b\x1b", start_time=5)
    holder = holder_of(tmp_path, 1)
    assert holder is not None
    assert (holder.command, holder.start_time) == ("a) S 9 (b\N{REPLACEMENT CHARACTER}", 5)


def test_a_process_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    assert holder_of(tmp_path, 1234) is None


def test_a_process_that_goes_while_it_is_read_holds_nothing(tmp_path: Path) -> None:
    (process(tmp_path, 1234) / "cgroup").unlink()
    assert holder_of(tmp_path, 1234) is None


def test_another_process_with_the_same_number_is_not_taken_for_the_holder(tmp_path: Path) -> None:
    folder = process(tmp_path, 1234)
    cgroup = (folder / "cgroup").read_text()
    (folder / "cgroup").unlink()
    os.mkfifo(folder / "cgroup")

    def change_hands() -> None:
        with (folder / "cgroup").open("w") as opened:  # waits until the holder's is being read
            process(tmp_path, 1234, start_time=4712)
            opened.write(cgroup)

    other = threading.Thread(target=change_hands)
    other.start()
    assert holder_of(tmp_path, 1234) is None
    other.join()


def test_the_real_procfs_tells_of_this_very_process() -> None:
    holder = holder_of(Path("/proc"), os.getpid())
    assert holder is not None
    assert holder.pid == os.getpid()
    assert holder.command == Path("/proc/self/comm").read_text().rstrip("\n")
    assert (
        0
        < holder.start_time
        <= int(float(Path("/proc/uptime").read_text().split()[0]) * os.sysconf("SC_CLK_TCK"))
    )


def test_a_process_that_has_ended_is_gone_from_the_real_procfs() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert holder_of(Path("/proc"), ended.pid) is None


def test_the_processor_time_of_holders_is_that_of_all_their_threads(tmp_path: Path) -> None:
    ticks_a_second = os.sysconf("SC_CLK_TCK")
    for pid, user, system in ((10, 3, 1), (11, 5, 0)):
        (tmp_path / str(pid)).mkdir()
        fields = ["S", *["0"] * 10, str(user * ticks_a_second), str(system * ticks_a_second), *["0"] * 6]
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) b) {' '.join(fields)} 777 0")
    first, second = (Holder(pid=pid, start_time=777, command="a) b") for pid in (10, 11))
    assert cpu_time_s(tmp_path, (first, second)) == 9
    assert cpu_time_s(tmp_path, ()) == 0


def test_the_processor_time_of_another_process_of_that_id_is_unknown() -> None:
    myself = holder_of(Path("/proc"), os.getpid())
    assert myself is not None
    assert cpu_time_s(Path("/proc"), (myself,)) is not None
    earlier = Holder(pid=myself.pid, start_time=myself.start_time - 1, command="")
    assert cpu_time_s(Path("/proc"), (myself, earlier)) is None
    assert cpu_time_s(Path("/nowhere"), (myself,)) is None
