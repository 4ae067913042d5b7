"""What the process of a reset sees of the devices itself, also of those that do not answer.

Processes that may be ended for a reset: real ones, asked first and killed then, and nobody else.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from nodeagent.drivers.shared.resetting import ResetRefused
from nodeagent.drivers.shared.users import user_of
from nodeagent.emulator.node import EmulatedNode
from nodeagent.reset_unit import devices
from nodeagent.reset_unit.devices import end_processes, list_devices, processes_to_end
from nodeagent.reset_unit.exchange.requests import JobProcess, RequestedDevice
from nodeagent.vendors import VendorConfig
from nodeagent.wire import DeviceUser
from tests.cgroups import make_folders
from tests.reset_unit.conftest import Emulate, ResetUnit, fake_tool, make_reset_unit

TOOL = """
print("GPU 00000000:00:00.0 was successfully reset.", file=open({called!r}, "a"))
print(*sys.argv[1:], file=open({called!r}, "a"))
print("GPU 00000000:00:00.0 was successfully reset.")
"""
KERNEL_SAYS = "GPU UUID: \t {uuid}\nDevice Minor: \t 1\n"


def section(node: EmulatedNode, library: Path) -> VendorConfig:
    return VendorConfig(library=str(library), sysfs=str(node.sysfs))


def test_the_devices_and_who_is_on_them(emulate: Emulate) -> None:
    node = emulate("4x910B")
    node.hold("npu2", os.getpid())
    seen = list_devices("ascend", section(node, node.dcmi), "boot", ["npu1", "npu2", "npu9"])
    assert list(seen.devices) == ["npu0", "npu1", "npu2", "npu3"]
    assert {device.attributes["group"] for device in seen.devices.values()} == {"npus"}
    held = {
        name: None if each is None else [holder.pid for holder in each] for name, each in seen.users.items()
    }
    assert held == {"npu1": [], "npu2": [os.getpid()], "npu9": None}


def test_a_library_that_is_not_there_is_named(emulate: Emulate, tmp_path: Path) -> None:
    node = emulate("4x910B")
    with pytest.raises(
        ResetRefused, match=rf"^the ascend devices cannot be read: .* but {tmp_path}/none.so: there is no"
    ):
        list_devices("ascend", section(node, tmp_path / "none.so"), "boot")


def test_a_library_that_hangs_is_not_waited_for_for_ever(
    emulate: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "LOOK_LIMIT_S", 1.0)
    monkeypatch.setattr(devices, "END_LIMIT_S", 0.2)
    node = emulate("4x910B")
    node.hang()
    with pytest.raises(ResetRefused, match=r"^the ascend devices were not listed within 1 s$"):
        list_devices("ascend", section(node, node.dcmi), "boot")


def test_a_gpu_that_does_not_even_say_who_it_is_is_reset_where_the_kernel_knows_it(tmp_path: Path) -> None:
    with EmulatedNode.create(tmp_path / "node", "2xH100") as node:
        reset_unit = make_reset_unit(tmp_path, node, "nvidia")
        pci = f"{node.gpus.pci('gpu1')}.0"
        reset_unit.procfs = tmp_path / "proc"
        listed = reset_unit.procfs / "driver/nvidia/gpus" / pci
        listed.mkdir(parents=True)
        (listed / "information").write_text(KERNEL_SAYS.format(uuid=node.gpus.uuid("gpu1")))
        reset_unit.configure()
        reset_unit.env = fake_tool(
            tmp_path / "bin", "nvidia-smi", TOOL.format(called=str(tmp_path / "called")), {}
        )
        node.hang("gpu1", "nvmlDeviceGetHandleByIndex_v2")
        result = reset_unit.do(
            devices=(RequestedDevice(name="gpu1", identity=node.gpus.uuid("gpu1"), pci=pci),)
        )
    assert (result.state, result.reason) == ("done", "the devices have started again")
    assert f"--gpu-reset -i {pci}" in (tmp_path / "called").read_text().splitlines()


PROCFS = Path("/proc")
SLURM = "0::/system.slice/slurmstepd.scope/job_9/step_0/user/task_0\n"
DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
)
OBEDIENT = "import time; print(flush=True); time.sleep(600)"
REGISTERED = ('terminate_holders = "registered"', 'terminate_grace = "5s"')

Job = subprocess.Popen[str]


@pytest.fixture
def jobs() -> Iterator[list[Job]]:
    """One that ends when it is asked, one that does not listen."""
    with ExitStack() as stack:
        begun = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
            )
            for code in (OBEDIENT, DEAF)
        ]
        for job in begun:
            stack.callback(job.kill)
            assert job.stdout is not None
            job.stdout.readline()
        yield begun


def holder(job: Job, older_by: int = 0) -> DeviceUser:
    """``older_by``: clock ticks by which the one that is meant began before."""
    found = user_of(PROCFS, job.pid)
    assert found is not None
    return DeviceUser(pid=job.pid, start_time=found.start_time - older_by, command="job", job="slurm:9.0")


def named(job: Job, older_by: int = 0) -> JobProcess:
    meant = holder(job, older_by)
    return JobProcess(pid=meant.pid, start_time=meant.start_time)


def in_slurm(folder: Path, *jobs: Job) -> Path:
    """The root of a /proc with these processes, as Slurm would have begun them."""
    for job in jobs:
        process = folder / "proc" / str(job.pid)
        process.mkdir(parents=True)
        (process / "stat").symlink_to(f"/proc/{job.pid}/stat")
        (process / "cgroup").write_text(SLURM)
    make_folders(folder / "sys/fs/cgroup", SLURM)
    return folder / "proc"


def test_each_is_asked_and_who_does_not_listen_is_killed(jobs: list[Job]) -> None:
    steps: list[str] = []
    obedient, deaf = jobs
    assert end_processes([holder(job) for job in jobs], 1.0, PROCFS, steps.append) == ()
    assert (obedient.wait(10), deaf.wait(10)) == (-15, -9)
    assert steps == [f"SIGTERM to job ({obedient.pid}), job ({deaf.pid})", f"SIGKILL to job ({deaf.pid})"]


def test_another_process_that_got_the_pid_is_let_alone(jobs: list[Job]) -> None:
    obedient, _ = jobs
    assert end_processes([holder(obedient, older_by=1)], 0.1, PROCFS, print) == ()
    assert obedient.poll() is None


def test_one_that_has_gone_is_no_hindrance(jobs: list[Job]) -> None:
    obedient, _ = jobs
    process = holder(obedient)
    obedient.kill()
    obedient.wait(10)
    assert end_processes([process], 0.1, PROCFS, print) == ()


# ---------------------------------------------------------------------- which of them


@pytest.fixture
def others() -> dict[str, DeviceUser]:
    return {
        "job": DeviceUser(pid=41, start_time=7, command="python", job="slurm:9.0"),
        "service": DeviceUser(pid=42, start_time=7, command="dcgm-exporter"),
        "unreadable": DeviceUser(pid=43, start_time=0, command=""),
    }


def test_those_that_are_named_and_hold_a_device_may_be_ended(others: dict[str, DeviceUser]) -> None:
    held = {"npu0": (others["job"], others["service"]), "npu1": (others["job"],)}
    assert processes_to_end([JobProcess(pid=41, start_time=7)], held, PROCFS) == (others["job"],)


@pytest.mark.parametrize("meant", [JobProcess(pid=41, start_time=8), JobProcess(pid=44, start_time=7)])
def test_one_that_holds_none_is_not_among_them(others: dict[str, DeviceUser], meant: JobProcess) -> None:
    assert processes_to_end([meant], {"npu0": (others["job"],)}, PROCFS) == ()


def test_a_service_of_the_node_is_nobodys_to_end(others: dict[str, DeviceUser]) -> None:
    with pytest.raises(
        ResetRefused, match=r"^dcgm-exporter \(pid 42\) on npu0 is of no job that may be ended$"
    ):
        processes_to_end([JobProcess(pid=42, start_time=7)], {"npu0": (others["service"],)}, PROCFS)


@pytest.mark.root
def test_what_runs_in_our_own_container_is_nobodys_to_end(
    tmp_path: Path, others: dict[str, DeviceUser]
) -> None:
    own = tmp_path / "proc" / str(os.getpid())
    own.mkdir(parents=True)
    (own / "stat").symlink_to("/proc/self/stat")
    cgroup = "4:memory:/slurm/uid_0/job_9/step_0\n"
    (own / "cgroup").write_text(cgroup)
    make_folders(tmp_path / "sys/fs/cgroup", cgroup)
    with pytest.raises(ResetRefused, match="is of no job that may be ended"):
        processes_to_end([JobProcess(pid=41, start_time=7)], {"npu0": (others["job"],)}, own.parent)


def test_where_it_is_not_known_who_holds_a_device_nobody_is_ended(others: dict[str, DeviceUser]) -> None:
    with pytest.raises(ResetRefused, match=r"^the users of npu1 are not known$"):
        processes_to_end([JobProcess(pid=41, start_time=7)], {"npu0": (others["job"],), "npu1": None}, PROCFS)


# ---------------------------------------------------------------------- by the process of a reset


@pytest.mark.root
def test_a_job_is_ended_before_its_devices_are_reset(
    reset_unit: ResetUnit, jobs: list[Job], tmp_path: Path
) -> None:
    obedient, deaf = jobs
    reset_unit.procfs = in_slurm(tmp_path, obedient)
    reset_unit.configure(*REGISTERED)
    reset_unit.node.hold("npu2", obedient.pid)
    name = reset_unit.ask(ended_first=(named(obedient), named(deaf)))
    process = reset_unit.start(name)
    assert obedient.wait(30) == -15
    reset_unit.node.let_go("npu2")
    assert process.wait(60) == 0
    result = reset_unit.folder.result(name)
    assert result is not None
    assert result.state == "done"
    assert f"SIGTERM to python ({obedient.pid})" in " ".join(step.what for step in result.steps)
    assert deaf.poll() is None


def test_a_process_that_holds_no_device_is_not_ended_on_a_word(
    reset_unit: ResetUnit, jobs: list[Job]
) -> None:
    obedient, _ = jobs
    reset_unit.configure(*REGISTERED)
    assert reset_unit.do(ended_first=(named(obedient),)).state == "done"
    assert obedient.poll() is None


def test_one_that_belongs_to_no_job_is_not_ended(reset_unit: ResetUnit, jobs: list[Job]) -> None:
    obedient, _ = jobs
    reset_unit.configure(*REGISTERED)
    reset_unit.node.hold("npu2", obedient.pid)
    result = reset_unit.do(ended_first=(named(obedient),))
    assert result.state == "refused"
    assert result.reason.endswith(f"(pid {obedient.pid}) on npu2 is of no job that may be ended")
    assert (obedient.poll(), reset_unit.resets) == (None, 0)


@pytest.mark.root
def test_where_the_configuration_ends_nobody_nobody_is_ended(
    reset_unit: ResetUnit, jobs: list[Job], tmp_path: Path
) -> None:
    obedient, _ = jobs
    reset_unit.procfs = in_slurm(tmp_path, obedient)
    reset_unit.configure()
    reset_unit.node.hold("npu2", obedient.pid)
    result = reset_unit.do(ended_first=(named(obedient),))
    assert (result.state, result.reason) == (
        "refused",
        'jobs are to be ended for it, and reset.terminate_holders is "never"',
    )
    assert (obedient.poll(), reset_unit.resets) == (None, 0)


@pytest.mark.root
def test_where_resets_are_forbidden_meanwhile_nobody_is_ended(
    reset_unit: ResetUnit, jobs: list[Job], tmp_path: Path
) -> None:
    obedient, _ = jobs
    reset_unit.procfs = in_slurm(tmp_path, obedient)
    reset_unit.configure(*REGISTERED, f'before = [["touch", "{reset_unit.do_not_touch}"]]')
    reset_unit.node.hold("npu2", obedient.pid)
    result = reset_unit.do(ended_first=(named(obedient),))
    assert (result.state, obedient.poll()) == ("refused", None)
