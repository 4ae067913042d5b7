"""The NPUs are let alone by a process that the kernel driver would give all of them to."""

import subprocess
import sys
from pathlib import Path

import pytest

from nodeagent import wire
from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.ascend import opening
from nodeagent.emulator.node import EmulatedNode

FIRST = opening.FIRST_PID_NAMESPACE
ALL, NO_CAPABILITIES = "000001ffffffffff", "0000000000000000"
HOSTS = "22 1 0:21 / /proc rw - proc proc rw\n23 1 0:22 / /sys rw - sysfs sysfs rw\n"
OTHERS = "922 901 0:21 / /proc rw - proc proc rw\n"
IN_A_CHROOT = "23 1 0:22 / /sys rw - sysfs sysfs rw\n"


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    folder = tmp_path / "dev"
    folder.mkdir()
    (folder / "davinci_manager").touch()
    return folder


def proc(
    folder: Path,
    mounts: str,
    *,
    effective: str = NO_CAPABILITIES,
    user: int = 0,
    pids: int = FIRST,
    users: int = opening.FIRST_USER_NAMESPACE,
    init: str = "systemd",
) -> Path:
    """What /proc shows a process with these mounts, where process 1 has those of ``HOSTS``."""
    for process, has in (("self", mounts), ("1", HOSTS)):
        (folder / process / "ns").mkdir(parents=True)
        (folder / process / "mountinfo").write_text(has)
    (folder / "1/comm").write_text(f"{init}\n")
    (folder / "self/status").write_text(f"Name:\tpython\nUid:\t{user}\t{user}\nCapEff:\t{effective}\n")
    (folder / "self/ns/pid").symlink_to(f"pid:[{pids}]")
    (folder / "self/ns/user").symlink_to(f"user:[{users}]")
    return folder


@pytest.mark.parametrize(
    "processes",
    [
        {"mounts": HOSTS},
        {"mounts": IN_A_CHROOT},
        {"mounts": HOSTS, "user": 998},
        {"mounts": OTHERS, "effective": ALL},
        {"mounts": HOSTS, "pids": 4026532000},
    ],
    ids=["host", "chroot", "other-user", "privileged-container", "container-with-an-init"],
)
def test_who_the_driver_takes_for_the_hosts_may_go_on(
    devices: Path, tmp_path: Path, processes: dict[str, str]
) -> None:
    opening.check_namespace(proc(tmp_path / "proc", **processes), devices)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "processes",
    [
        {"mounts": OTHERS},
        {"mounts": OTHERS, "effective": ALL, "user": 998},
        {"mounts": OTHERS, "effective": ALL, "users": 4026532001},
        {"mounts": OTHERS, "effective": "0000000400000000"},
        {"mounts": HOSTS, "pids": 4026532000, "init": "pause"},
    ],
    ids=["sandbox", "user", "user-namespace", "one-capability", "pod"],
)
def test_an_ordinary_container_lets_them_alone(
    devices: Path, tmp_path: Path, processes: dict[str, str]
) -> None:
    with pytest.raises(Unavailable, match="it is not in the mount namespace of the host") as refused:
        opening.check_namespace(proc(tmp_path / "proc", **processes), devices)  # type: ignore[arg-type]
    assert refused.value.code == "private_mount_namespace"
    assert not refused.value.absent


def test_who_cannot_see_process_1_lets_them_alone(devices: Path, tmp_path: Path) -> None:
    processes = proc(tmp_path / "proc", HOSTS)
    (processes / "1/mountinfo").unlink()
    with pytest.raises(Unavailable, match=r"as far as is known: .*mountinfo") as refused:
        opening.check_namespace(processes, devices)
    assert refused.value.code == "private_mount_namespace"


def test_without_devices_there_is_nothing_to_take(tmp_path: Path) -> None:
    opening.check_namespace(proc(tmp_path / "proc", OTHERS), tmp_path)


@pytest.mark.root
def test_a_worker_in_a_sandbox_beside_the_devices_never_asks_the_library(
    node: EmulatedNode, tmp_path: Path
) -> None:
    """As systemd makes one: a mount namespace, with a /dev that has them."""
    devices = tmp_path / "dev"
    devices.mkdir()
    for name in ("null", "davinci_manager"):
        (devices / name).touch()
    sandbox = f'mount --bind /dev/null {devices}/null && mount --bind {devices} /dev && exec "$@"'
    worker = (sys.executable, "-m", "nodeagent.worker", "ascend")
    configure = wire.Configure(
        driver="ascend", boot_id="b", config={"library": str(node.dcmi), "sysfs": str(node.sysfs)}
    )
    command = ["unshare", "--mount", "sh", "-c", sandbox, "sh", "setpriv", "--bounding-set=-all", *worker]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(wire.encode(configure))
        process.stdin.flush()
        said = wire.decode_report(process.stdout.readline())
        process.stdin.close()
    assert isinstance(said, wire.Unavailable), said
    assert said.code == "private_mount_namespace"
    assert said.reason == (
        "the NPUs are let alone, for this process would take them from all containers:"
        " it is not in the mount namespace of the host"
    )
    assert node.calls("dcmi_init") == 0
