"""The fabric manager is missed where switches need it, and nowhere else.

The fabric as a GPU sees it: shared with tenants, not whole, or not there where it ought to be.

The IMEX service is asked where a node has it, by a command that stands for NVIDIA's own.
"""

from pathlib import Path

import pytest

from nodeagent.core.model import Assertion, DeviceSeen, Kind, Signal, Verdict
from nodeagent.drivers.nvidia.checks import fabric
from nodeagent.drivers.nvidia.checks.fabric import CODES, DEGRADED, IMEX_DOWN, IMEX_NOT_READY, Imex, Manager
from tests.drivers.nvidia.bench import GpuNode, Judge, judged


def process(procfs: Path, pid: int, name: str) -> Path:
    folder = procfs / str(pid)
    folder.mkdir(parents=True)
    (folder / "comm").write_text(f"{name}\n")
    return folder


@pytest.fixture
def procfs(tmp_path: Path) -> Path:
    """Of a whole node, with programs on it."""
    for pid, name in ((1, "systemd"), (2, "kthreadd"), (800, "python3")):
        process(tmp_path / "proc", pid, name)
    return tmp_path / "proc"


def port(sysfs: Path, data: bytes) -> None:
    folder = sysfs / "class/infiniband/mlx5_4/device"
    folder.mkdir(parents=True)
    (folder / "vpd").write_bytes(data)


def test_it_is_not_missed_where_there_is_no_switch(procfs: Path, tmp_path: Path) -> None:
    port(tmp_path / "sys", b"V3 ConnectX-7 SMDL=NIC")
    assert Manager(procfs, tmp_path / "sys").look(switches=False) is None


def test_it_is_seen_to_end_and_to_begin_anew(
    procfs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodeagent.drivers.nvidia.checks.fabric.LOOK_S", 0.0)
    running = process(procfs, 4711, "nv-fabricmanage")
    manager = Manager(procfs, tmp_path)
    assert manager.look(switches=True) is True
    (running / "comm").write_text("sleep\n")
    assert manager.look(switches=True) is False
    process(procfs, 4712, "nv-fabricmanage")
    assert manager.look(switches=True) is True


def test_switches_behind_a_network_port_need_it_too(procfs: Path, tmp_path: Path) -> None:
    port(tmp_path / "sys", b"V3 ConnectX-7 SMDL=SW_MNG")
    assert Manager(procfs, tmp_path / "sys").look(switches=False) is False


def test_who_does_not_see_all_processes_of_the_node_tells_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a container: process 2 is another, or hidden."""
    process(tmp_path, 1, "python3")
    manager = Manager(tmp_path, tmp_path)
    assert [manager.look(switches=True), manager.look(switches=True)] == [None, None]
    assert capsys.readouterr().err.count("not watched") == 1


def test_a_process_of_any_name_disturbs_nothing(procfs: Path, tmp_path: Path) -> None:
    (process(procfs, 900, "odd") / "comm").write_bytes(b"\xff\xfe\n")
    process(procfs, 4711, "nv-fabricmanage")
    assert Manager(procfs, tmp_path).look(switches=True) is True


def configured(root: Path, mode: int, path: str = "usr/share/nvidia/nvswitch/fabricmanager.cfg") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"# FABRIC_MODE=1\nFABRIC_MODE = {mode}\n")


@pytest.mark.parametrize(("mode", "is_shared"), [(0, False), (1, True), (2, True)])
def test_its_configuration_says_whether_tenants_share_the_switches(
    procfs: Path, tmp_path: Path, mode: int, is_shared: bool
) -> None:
    configured(tmp_path / "driver", mode)
    assert Manager(procfs, tmp_path, str(tmp_path / "driver")).is_shared() is is_shared


def test_the_configuration_of_the_process_that_runs_counts(procfs: Path, tmp_path: Path) -> None:
    running = process(procfs, 4711, "nv-fabricmanage")
    (running / "cmdline").write_bytes(b"nv-fabricmanager\0-c\0/etc/fm.cfg\0")
    configured(running / "root", 1, "etc/fm.cfg")
    configured(tmp_path / "driver", 0)
    manager = Manager(procfs, tmp_path, str(tmp_path / "driver"))
    manager.look(switches=True)
    assert manager.is_shared()


IN_PROGRESS = 2


async def test_a_gpu_that_waits_for_its_partition_has_no_fault(
    h100: GpuNode, judge: Judge, tmp_path: Path
) -> None:
    configuration = tmp_path / "driver/usr/share/nvidia/nvswitch/fabricmanager.cfg"
    configuration.parent.mkdir(parents=True)
    configuration.write_text("FABRIC_MODE=1\n")
    h100.gpus.set_fabric("gpu1", IN_PROGRESS)
    h100.gpus.set_fabric("gpu2", 3, status=999)
    config = {**h100.spec().config, "driver_root": str(tmp_path / "driver")}
    async with judged(h100.spec(config=config), judge) as stage:
        await stage.back()
        await stage.until(lambda: "NV_FABRIC_FAILED" in judge.open("gpu2") or None)
        await stage.polled("gpu1", times=10)
        assert judge.open("gpu1") == {}


async def test_without_sharing_it_is_one_that_has_not_joined(h100: GpuNode, judge: Judge) -> None:
    h100.gpus.set_fabric("gpu1", IN_PROGRESS)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: "NV_FABRIC_NOT_READY" in judge.open("gpu1") or None)


NOT_SUPPORTED, COMPLETED = 0, 3


async def test_a_gpu_that_the_driver_does_not_register_is_told_where_its_links_lead_to_switches(
    h100: GpuNode, judge: Judge
) -> None:
    h100.gpus.set_fabric("gpu1", NOT_SUPPORTED)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: judge.open("gpu1") == {"NV_FABRIC_UNSUPPORTED": "SubHealthFault"} or None)
        assert judge.view("gpu1").verdict is Verdict.ALLOW
        h100.gpus.set_fabric("gpu1", COMPLETED)
        await stage.until(lambda: judge.open("gpu1") == {} or None)


async def test_gpus_that_are_linked_without_switches_have_no_fabric_and_miss_none(
    h100: GpuNode, judge: Judge
) -> None:
    for gpu in h100.node.names():
        h100.gpus.set_fabric(gpu, NOT_SUPPORTED)
        h100.node.set(gpu, "gpu_nvlink_remote_type", 0)
    async with judged(h100.spec(), judge) as stage:
        await stage.polled("gpu1", times=12)
        assert judge.open("gpu1") == {}


@pytest.mark.parametrize(
    ("code", "shift"),
    [
        ("NV_FABRIC_DEGRADED_BANDWIDTH", 0),
        ("NV_FABRIC_ROUTE_RECOVERY", 2),
        ("NV_FABRIC_ROUTE_UNHEALTHY", 4),
        ("NV_FABRIC_ACCESS_TIMEOUT", 6),
    ],
)
async def test_while_the_fabric_of_a_gpu_is_not_whole_no_new_work_comes_to_it(
    h100: GpuNode, judge: Judge, code: str, shift: int
) -> None:
    """What DCGM fails a GPU for (``MonitorFabricFields`` in modules/health/DcgmHealthWatch.cpp)."""
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.node.set("gpu1", "gpu_fabric_health_mask", 0x1AA & ~(3 << shift) | 1 << shift)
        await stage.until(lambda: code in judge.open("gpu1") or None)
        assert judge.view("gpu1").verdict is Verdict.NO_NEW_JOBS
        h100.node.set("gpu1", "gpu_fabric_health_mask", 0x1AA)
        await stage.until(lambda: judge.view("gpu1").verdict is Verdict.ALLOW or None)


@pytest.mark.parametrize("code", ["NV_FABRIC_ROUTE_RECOVERY", "NV_NVLINK_CRC_RATE", "NV_NVLINK_ERROR_RATE"])
def test_what_comes_and_goes_with_a_link_never_isolates_its_gpu(judge: Judge, code: str) -> None:
    judge.take(DeviceSeen(source="nvidia", device="gpu0", kind=Kind.CHIP, vendor="nvidia", identity="GPU-1"))
    for _ in range(5):
        for assertion in (Assertion.OCCUR, Assertion.RECOVER):
            judge.take(Signal(source="nvidia", device="gpu0", code=code, assertion=assertion))
            judge.skip(600)
    assert judge.view("gpu0").verdict is Verdict.NO_NEW_JOBS
    judge.skip(86_401)
    assert judge.view("gpu0").verdict is not Verdict.NO_NEW_JOBS


NOT_CONFIGURED = "Failed to read node configuration file /etc/nvidia-imex/nodes_config.cfg"
UP = '{"nodes":{"0":{"status":"READY","host":"10.0.0.1"}},"timestamp":"11/22/2026","status":"UP"}'


def install(root: Path, daemon: str, domain: str = UP, before: str = "") -> None:
    """Its answers to ``-q`` and to ``-N -j``."""
    command = root / "usr/bin/nvidia-imex-ctl"
    command.parent.mkdir(parents=True, exist_ok=True)
    script = f"""#!/bin/sh
{before}
case "$*" in
    -q) echo '{daemon}' ;;
    "-N -j") echo '{domain}' ;;
    *) echo "unknown options $*" >&2; exit 1 ;;
esac
"""
    command.write_text(script)
    command.chmod(0o755)


def asked(service: Imex) -> set[str]:
    """The codes that are active; each is known."""
    known = service.ask()
    assert set(known) == set(CODES)
    return {code for code, active in known.items() if active}


@pytest.mark.parametrize(
    ("daemon", "domain", "codes"),
    [
        ("READY", UP, set()),
        ("UNAVAILABLE", UP, set()),
        ("INITIALIZING", UP, {IMEX_NOT_READY}),
        ("WAITING_FOR_PEERS", UP.replace("UP", "DOWN"), {IMEX_NOT_READY, IMEX_DOWN}),
        ("READY", UP.replace("UP", "DEGRADED"), {DEGRADED}),
        (NOT_CONFIGURED, NOT_CONFIGURED, set()),
    ],
)
def test_it_is_judged_as_dcgm_does(tmp_path: Path, daemon: str, domain: str, codes: set[str]) -> None:
    install(tmp_path, daemon, domain)
    assert asked(Imex(str(tmp_path))) == codes


def test_a_node_without_the_command_has_no_fault(tmp_path: Path) -> None:
    assert asked(Imex(str(tmp_path))) == set()


def test_what_it_does_not_tell_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fabric, "LIMIT_S", 0.2)
    service = Imex(str(tmp_path))
    install(tmp_path, "READY", UP.replace("UP", "DOWN"))
    assert asked(service) == {IMEX_DOWN}
    for daemon, domain, before in (
        ("", "", "exit 1"),
        ("dancing", '{"status": 3}', ""),
        ("READY", UP, "exec sleep 5"),
    ):
        install(tmp_path, daemon, domain, before)
        assert asked(service) == {IMEX_DOWN}
    assert capsys.readouterr().err.count("IMEX is not watched") == 1
    install(tmp_path, "READY")
    assert asked(service) == set()


async def test_a_domain_that_is_down_is_a_fault_of_the_node_and_stops_nothing(
    h100: GpuNode, judge: Judge, tmp_path: Path
) -> None:
    install(tmp_path / "driver", "INIT_GPU", UP.replace("UP", "DOWN"))
    config = {**h100.spec().config, "driver_root": str(tmp_path / "driver")}
    async with judged(h100.spec(config=config), judge) as stage:
        await stage.back()
        await stage.until(lambda: set(judge.open("node")) == {IMEX_NOT_READY, IMEX_DOWN} or None)
        assert judge.open("node") == {IMEX_NOT_READY: "NotHandleFault", IMEX_DOWN: "SubHealthFault"}
        judge.skip(181)
        assert judge.open("node") == {IMEX_NOT_READY: "SubHealthFault", IMEX_DOWN: "SubHealthFault"}
        assert judge.view("node").verdict is Verdict.ALLOW
