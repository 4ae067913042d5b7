"""How GPUs are reset: by which calls, in which order, and what is refused or failed."""

from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.drivers.nvidia import reset as nvidia
from nodeagent.drivers.nvidia.identity import OF_THE_HOST
from nodeagent.drivers.shared.resetting import ResetFailed, ResetMember, ResetOrder, ResetRefused
from nodeagent.emulator.node import EmulatedNode
from tests.reset_unit.conftest import Emulate, fake_tool

TOOL = """
from pathlib import Path
from nodeagent.emulator.node import EmulatedNode
node = EmulatedNode(Path({directory!r}))
if holders := node.gpus.obstacles("gpu1"):
    print("GPU 0000:00:00.0 is in use by another client:", *holders)
    sys.exit(255)
node.gpus.chip("gpu1").gpu_rows_pending = 0
Path({directory!r}, "called").open("a").write(" ".join(sys.argv[1:]) + "\\n")
for pci in sys.argv[-1].split(","):
    print(f"GPU 0000{{pci.upper()}} was successfully reset.")
print("All done.")
"""


@pytest.fixture
def gpus(emulate: Emulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmulatedNode:
    """Two, and an nvidia-smi that resets gpu1."""
    node = emulate("2xH100")
    env = fake_tool(tmp_path / "bin", "nvidia-smi", TOOL.format(directory=str(node.directory)), {})
    monkeypatch.setenv("PATH", env["PATH"])
    return node


def gpu_order(tmp_path: Path, **attributes: str) -> ResetOrder:
    (tmp_path / "proc").mkdir(exist_ok=True)
    member = ResetMember(
        name="gpu1", identity="GPU-1", attributes={"minor": "1", "pci": "0000:3b:00.0", **attributes}
    )
    return ResetOrder(members=(member,), start_limit_s=20, step=lambda _: None, procfs=str(tmp_path / "proc"))


def opened(tmp_path: Path, pid: int, command: str, path: str) -> None:
    """A process that has a file open."""
    descriptors = tmp_path / "proc" / str(pid) / "fd"
    descriptors.mkdir(parents=True)
    (tmp_path / "proc" / str(pid) / "comm").write_text(f"{command}\n")
    (descriptors / "3").symlink_to(path)


def test_the_vendors_tool_resets_a_gpu(gpus: EmulatedNode, tmp_path: Path) -> None:
    gpus.gpus.remap("gpu1", uncorrected=1, pending=True)
    nvidia.reset(gpu_order(tmp_path))
    assert gpus.gpus.chip("gpu1").gpu_rows_pending == 0
    assert (gpus.directory / "called").read_text() == "--gpu-reset -i 0000:3b:00.0\n"


def test_who_has_a_gpu_open_is_named(gpus: EmulatedNode, tmp_path: Path) -> None:
    opened(tmp_path, 41, "nvidia-persiste", "/dev/nvidia1")
    opened(tmp_path, 42, "dcgm-exporter", "/dev/nvidia1")
    opened(tmp_path, 43, "other", "/dev/nvidia0")
    with pytest.raises(ResetRefused) as refused:
        nvidia.reset(gpu_order(tmp_path))
    assert str(refused.value) == "gpu1 is open in nvidia-persiste (pid 41), dcgm-exporter (pid 42)"
    assert not (gpus.directory / "called").exists()


def test_a_virtual_gpu_is_not_reset_by_its_guest(gpus: EmulatedNode, tmp_path: Path) -> None:
    with pytest.raises(ResetRefused) as refused:
        nvidia.reset(gpu_order(tmp_path, virtualization="vgpu", no_reset=OF_THE_HOST))
    assert str(refused.value) == f"gpu1 cannot be reset: {OF_THE_HOST}"
    assert not (gpus.directory / "called").exists()


def test_gpus_that_are_linked_are_reset_in_one_go_and_never_under_a_fabric_manager(
    gpus: EmulatedNode, tmp_path: Path
) -> None:
    (alone,) = gpu_order(tmp_path).members
    other = ResetMember(name="gpu0", identity="GPU-0", attributes={"minor": "0", "pci": "0000:1b:00.0"})
    both = replace(gpu_order(tmp_path), members=(alone, other))
    nvidia.reset(both)
    assert (gpus.directory / "called").read_text() == "--gpu-reset -i 0000:3b:00.0,0000:1b:00.0\n"
    opened(tmp_path, 44, "nv-fabricmanage", "/dev/nvidia-nvswitch2")
    with pytest.raises(ResetRefused) as refused:
        nvidia.reset(both)
    assert str(refused.value) == (
        "GPUs that are linked are reset with their switches, open in nv-fabricmanage (pid 44)"
    )


def test_a_gpu_that_the_tool_finds_in_use_is_not_reset_and_has_not_failed(
    gpus: EmulatedNode, tmp_path: Path
) -> None:
    gpus.hold("gpu1", 4711)
    with pytest.raises(ResetRefused) as refused:
        nvidia.reset(gpu_order(tmp_path))
    assert str(refused.value) == (
        "nvidia-smi --gpu-reset -i 0000:3b:00.0: exit status 255:"
        " GPU 0000:00:00.0 is in use by another client: 4711"
    )


def test_where_the_kernel_itself_has_it_open_that_is_said(gpus: EmulatedNode, tmp_path: Path) -> None:
    gpus.hold("gpu1", 4711)
    modeset = tmp_path / "sys/module/nvidia_drm/parameters/modeset"
    modeset.parent.mkdir(parents=True)
    modeset.write_text("Y\n")
    with pytest.raises(ResetRefused, match=r"nvidia_drm has it open \(modeset=Y\)"):
        nvidia.reset(replace(gpu_order(tmp_path), sysfs=str(tmp_path / "sys")))


def test_who_has_it_open_to_draw_is_named(gpus: EmulatedNode, tmp_path: Path) -> None:
    (tmp_path / "sys/bus/pci/devices/0000:3b:00.0/drm/renderD129").mkdir(parents=True)
    opened(tmp_path, 41, "Xorg", "/dev/dri/renderD129")
    opened(tmp_path, 42, "other", "/dev/dri/renderD128")
    with pytest.raises(ResetRefused, match=r"^gpu1 is open in Xorg \(pid 41\)$"):
        nvidia.reset(replace(gpu_order(tmp_path), sysfs=str(tmp_path / "sys")))
    assert not (gpus.directory / "called").exists()


REFUSING = """
print({said!r})
sys.exit({status})
"""


@pytest.mark.parametrize(
    ("status", "said", "ended"),
    [
        (255, "GPU 00000000:3B:00.0: In use by another client", ResetRefused),
        (3, "GPU Reset is not supported on this device", ResetRefused),
        (4, "Insufficient Permissions", ResetRefused),
        (255, "GPU 00000000:3B:00.0 could not be reset: Unknown Error", ResetFailed),
        (15, "GPU is lost", ResetFailed),
    ],
)
def test_what_has_not_begun_is_refused_and_what_went_wrong_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, said: str, ended: type[Exception]
) -> None:
    script = REFUSING.format(status=status, said=said)
    monkeypatch.setenv("PATH", fake_tool(tmp_path / "bin", "nvidia-smi", script, {})["PATH"])
    with pytest.raises(ended, match=said):
        nvidia.reset(gpu_order(tmp_path))


def test_the_tool_of_a_driver_in_a_container_is_run_in_its_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "if sys.argv[1:3] == ['/run/nvidia/driver', 'nvidia-smi']: print('successfully reset')"
    monkeypatch.setenv("PATH", fake_tool(tmp_path / "bin", "chroot", script, {})["PATH"])
    nvidia.reset(replace(gpu_order(tmp_path), driver_root="/run/nvidia/driver"))


def test_a_tool_that_says_0_and_names_no_gpu_as_reset_has_failed(
    gpus: EmulatedNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = fake_tool(tmp_path / "bin", "nvidia-smi", "print('Resetting GPU is not supported.')", {})
    monkeypatch.setenv("PATH", env["PATH"])
    with pytest.raises(ResetFailed) as failed:
        nvidia.reset(gpu_order(tmp_path))
    assert str(failed.value) == (
        "nvidia-smi --gpu-reset -i 0000:3b:00.0: exit status 0, 0 of 1 reported as reset:"
        " Resetting GPU is not supported."
    )


def test_a_partitioned_gpu_is_reset_once_no_instance_is_left(gpus: EmulatedNode, tmp_path: Path) -> None:
    order = gpu_order(tmp_path, mig="enabled")
    with pytest.raises(ResetRefused, match="whether it has instances is unknown"):
        nvidia.reset(order)
    instance = tmp_path / "proc/driver/nvidia/capabilities/gpu1/mig/gi3"
    instance.mkdir(parents=True)
    with pytest.raises(ResetRefused) as refused:
        nvidia.reset(order)
    assert str(refused.value) == "gpu1 is partitioned (MIG): its 1 instance must be removed first"
    instance.rmdir()
    nvidia.reset(order)
    assert (gpus.directory / "called").read_text() == "--gpu-reset -i 0000:3b:00.0\n"


def test_without_the_tool_nothing_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ResetRefused, match="nvidia-smi is not installed"):
        nvidia.reset(gpu_order(tmp_path))


KERNEL_SAYS = """Model: 		 NVIDIA H100 80GB HBM3
GPU UUID: 	 {uuid}
Bus Location: 	 0000:3b:00.0
Device Minor: 	 1
"""


def listed_by_the_kernel(tmp_path: Path, uuid: str) -> None:
    folder = tmp_path / "proc/driver/nvidia/gpus/0000:3b:00.0"
    folder.mkdir(parents=True)
    (folder / "information").write_text(KERNEL_SAYS.format(uuid=uuid))


def silent(tmp_path: Path) -> ResetOrder:
    """For a GPU that hangs."""
    member = ResetMember(
        name="gpu1", identity="GPU-" + "1" * 8 + "-1111" * 3 + "-" + "1" * 12, pci="0000:3b:00.0"
    )
    return replace(gpu_order(tmp_path), members=(member,))


def test_of_a_gpu_that_says_nothing_the_kernel_tells_where_it_sits_and_who_has_it_open(
    gpus: EmulatedNode, tmp_path: Path
) -> None:
    order = silent(tmp_path)
    listed_by_the_kernel(tmp_path, order.members[0].identity)
    opened(tmp_path, 41, "python", "/dev/nvidia1")
    with pytest.raises(ResetRefused, match=r"^gpu1 is open in python \(pid 41\)$"):
        nvidia.reset(order)
    (tmp_path / "proc/41/fd/3").unlink()
    nvidia.reset(order)
    assert (gpus.directory / "called").read_text() == "--gpu-reset -i 0000:3b:00.0\n"


def test_a_gpu_that_neither_says_where_it_sits_nor_the_kernel_is_left_alone(
    gpus: EmulatedNode, tmp_path: Path
) -> None:
    with pytest.raises(
        ResetRefused, match=r"^gpu1 reports no PCI address, and neither does the kernel's driver$"
    ):
        nvidia.reset(silent(tmp_path))
    listed_by_the_kernel(tmp_path, "GPU-" + "2" * 8 + "-2222" * 3 + "-" + "2" * 12)
    with pytest.raises(ResetRefused, match=r"^another part sits in the place of gpu1: GPU-2222"):
        nvidia.reset(silent(tmp_path))
    assert not (gpus.directory / "called").exists()
