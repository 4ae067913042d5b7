"""Finding the library, and saying why not.

The NPUs are let alone by a process that the kernel driver would give all of them to.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent import wire
from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.ascend import opening
from nodeagent.drivers.ascend.opening import load
from nodeagent.emulator.node import EmulatedNode

NAME = "libdcmi.so"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return EmulatedNode.create(tmp_path / "node", "1x910B").dcmi


def refusal(configured: str) -> Unavailable:
    with pytest.raises(Unavailable) as refused:
        load(NAME, configured, {})
    return refused.value


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """As a user who may read no file of others, also where the tests run as root."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)


def test_the_configured_library_is_loaded(library: Path) -> None:
    assert load(NAME, str(library), {})._name == str(library)


def test_a_library_is_found_where_the_linker_looks(library: Path) -> None:
    path = f"/nowhere::{library.parent}"
    assert load(NAME, "", {"LD_LIBRARY_PATH": path})._name == str(library)


def test_a_library_is_found_where_the_installer_puts_it(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = library.rename(library.with_name("libinstalled.so"))
    monkeypatch.setattr(opening, "USUAL_FOLDERS", (Path("/nowhere"), library.parent))
    assert load(installed.name, "", {})._name == str(installed)


def test_what_the_linker_knows_goes_before_where_the_installer_puts_it(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libm.so.6").write_bytes(library.read_bytes())
    monkeypatch.setattr(opening, "USUAL_FOLDERS", (tmp_path,))
    assert load("libm.so.6", "", {})._name == "libm.so.6"


def test_a_library_with_a_symbol_missing_that_nobody_calls_is_loaded(tmp_path: Path) -> None:
    lacking = tmp_path / NAME
    source = "int newer(void); int answer(void) { return 8; } int other(void) { return newer(); }"
    command = ["cc", "-shared", "-fPIC", "-Wl,-z,lazy", "-o", str(lacking), "-x", "c", "-"]
    subprocess.run(command, input=source, text=True, check=True)
    assert load(NAME, str(lacking), {}).answer() == 8


def test_a_library_that_is_nowhere_is_absent() -> None:
    with pytest.raises(Unavailable) as refused:
        load("libnowhere.so", "", {})
    assert refused.value.absent
    assert str(refused.value) == "libnowhere.so is not installed"


def test_a_configured_library_that_is_not_there_is_absent(tmp_path: Path) -> None:
    refused = refusal(str(tmp_path / NAME))
    assert refused.absent
    assert str(refused) == f"{tmp_path / NAME}: there is no such library"


def test_a_library_for_another_machine_is_told_as_such(library: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.so"
    code = bytearray(library.read_bytes())
    code[18:20] = (0x15).to_bytes(2, "little")
    foreign.write_bytes(code)
    refused = refusal(str(foreign))
    assert not refused.absent
    assert str(refused) == f"{foreign} is built for machine 0x15, this machine is {os.uname().machine}"


def test_a_file_that_is_no_library_is_told_as_such(tmp_path: Path) -> None:
    text = tmp_path / NAME
    text.write_text("no library")
    refused = refusal(str(text))
    assert not refused.absent
    assert str(refused) == f"{text} is no shared library"


def test_a_library_that_is_cut_off_is_told_as_such(library: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.so"
    cut.write_bytes(library.read_bytes()[:64])
    refused = refusal(str(cut))
    assert not refused.absent
    assert str(refused).startswith(f"{cut} cannot be loaded: ")


def test_a_library_that_may_not_be_read_is_told_as_such(library: Path) -> None:
    library.chmod(0)
    with nobody():
        refused = refusal(str(library))
    assert not refused.absent
    assert str(refused) == f"{library}: Permission denied"


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
