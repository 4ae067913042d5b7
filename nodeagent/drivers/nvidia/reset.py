"""Resets GPUs by ``nvidia-smi --gpu-reset``: NVML has no such call. It opens no library itself.

The tool refuses a GPU that any process has open. So these processes are looked for first and named; none is
ended (a hook may stop them: packaging/hooks). The tool's exit status alone is not enough, because no poll
shows whether an Xid was cured: the tool must report each GPU as reset. If it reports that it has not begun,
the reset is refused, not failed. A GPU that hangs does not report its address: then the kernel's driver must
list it there.
"""

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from nodeagent.drivers.nvidia.identity import UUID, settled
from nodeagent.drivers.shared.resetting import (
    ResetFailed,
    ResetMember,
    ResetOrder,
    ResetRefused,
    ResetTimedOut,
    in_root,
)

TOOL: Final = "nvidia-smi"
RESET_WORDS: Final = "successfully reset"
"""The tool prints a line with this text for each GPU."""

IN_USE: Final = "in use by another client"
"""NVML's text for IN_USE; the tool ends with 255, as for any other failure, and has done nothing."""

NOT_BEGUN: Final[Mapping[int, str]] = {
    2: "an argument is invalid",
    3: "not supported",
    4: "no permission",
    6: "no such GPU",
    9: "the driver is not loaded",
    12: "the library is not found",
    13: "the library does not have it",
}
"""Exit statuses of the tool by which it has done nothing (its manual: RETURN VALUE)."""

MAX_NAMED: Final = 8
SWITCHES: Final = "/dev/nvidia-nvswitch"


def groups(devices: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The reset group of each device, as far as it is known."""
    return settled(devices)


def unlisted(_: Mapping[str, Mapping[str, str]]) -> str:
    """What the driver does not list cannot be named to its tool."""
    return ""


def reset(order: ResetOrder) -> None:
    """Those that are linked in one go, as the tool wants it.

    Raises ``ResetRefused``, ``ResetFailed`` and ``ResetTimedOut``.
    """
    procfs = Path(order.procfs)
    members = tuple(_located(member, procfs) for member in order.members)
    for member in members:
        _check(member, procfs, Path(order.sysfs))
    if len(members) > 1 and (users := _named(_clients(procfs, SWITCHES))):
        raise ResetRefused(f"GPUs that are linked are reset with their switches, open in {users}")
    order.step(f"{TOOL} --gpu-reset")
    _reset(members, order)


def _located(member: ResetMember, procfs: Path) -> ResetMember:
    """With its address and its device file. If it does not report them, the kernel's driver does."""
    if {"pci", "minor"} <= member.attributes.keys():
        return member
    listed = _listed(procfs, member.pci) if member.pci else {}
    if not listed:
        raise ResetRefused(f"{member.name} reports no PCI address, and neither does the kernel's driver")
    uuid = listed.get("GPU UUID", "")
    if UUID.fullmatch(uuid) and member.identity and uuid != member.identity:
        raise ResetRefused(f"another part sits in the place of {member.name}: {uuid}, not {member.identity}")
    minor = {"minor": listed["Device Minor"]} if "Device Minor" in listed else {}
    return replace(member, attributes={**member.attributes, **minor, "pci": member.pci})


def _listed(procfs: Path, pci: str) -> dict[str, str]:
    """What the kernel's driver lists about a GPU without asking it (kernel-open/nvidia/nv-procfs.c of
    NVIDIA's open modules); empty where it lists none there.
    """
    try:
        text = (procfs / "driver/nvidia/gpus" / pci / "information").read_text(errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _check(member: ResetMember, procfs: Path, sysfs: Path) -> None:
    attributes = member.attributes
    if why := attributes.get("no_reset"):
        raise ResetRefused(f"{member.name} cannot be reset: {why}")
    if (minor := attributes.get("minor")) is None:
        raise ResetRefused(f"which device file {member.name} has is not known, and so its users are not")
    if attributes.get("mig") == "enabled" and (why := _instances(procfs, minor)):
        raise ResetRefused(f"{member.name} is partitioned (MIG): {why}")
    files = (f"/dev/nvidia{minor}", *_drawing_files(sysfs, attributes["pci"]))
    if users := _named(client for file in files for client in _clients(procfs, file)):
        raise ResetRefused(f"{member.name} is open in {users}")


def _instances(procfs: Path, minor: str) -> str:
    """What of a GPU in MIG mode must be removed first, "" if nothing. The kernel's driver lists an entry for
    each GPU instance (``osRmCapRegisterGpu`` and what follows it, os.c of NVIDIA's open modules).
    """
    try:
        entries = (procfs / "driver/nvidia/capabilities" / f"gpu{minor}" / "mig").iterdir()
        found = sum(entry.name.startswith("gi") for entry in entries)
    except OSError as error:
        return f"whether it has instances is unknown: {error}"
    return f"its {found} instance{'s' if found > 1 else ''} must be removed first" if found else ""


def _drawing_files(sysfs: Path, pci: str) -> tuple[str, ...]:
    """Those by which displays and compositors have the GPU open; none where no such driver has taken it."""
    nodes = sorted((sysfs / "bus/pci/devices" / pci / "drm").glob("*[0-9]"))
    return tuple(f"/dev/dri/{node.name}" for node in nodes)


def _named(clients: Iterator[str]) -> str:
    found = list(clients)
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return ", ".join(found[:MAX_NAMED]) + more


def _clients(procfs: Path, device: str) -> Iterator[str]:
    """The processes that have the device file open, or one of the switches', as far as can be seen."""
    for process in sorted(procfs.glob("[0-9]*")):
        try:
            if any(_leads_to(link, device) for link in (process / "fd").iterdir()):
                yield f"{(process / 'comm').read_text(errors='replace').strip()} (pid {process.name})"
        except OSError:
            # It has ended, or may not be looked at: what it has open, the tool itself meets.
            continue


def _leads_to(link: Path, device: str) -> bool:
    try:
        path = str(link.readlink())
    except FileNotFoundError:
        return False
    return path == device or (device == SWITCHES and path.startswith(SWITCHES))


def _reset(members: tuple[ResetMember, ...], order: ResetOrder) -> None:
    target = ",".join(member.attributes["pci"] for member in members)
    command = in_root(order.driver_root, (TOOL, "--gpu-reset", "-i", target))
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=order.start_limit_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise ResetRefused(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ResetTimedOut(f"{TOOL} has not ended within {order.start_limit_s:g} s") from error
    reset_count = sum(RESET_WORDS in line for line in done.stdout.splitlines())
    if done.returncode == 0 and reset_count >= len(members):
        return
    output = " ".join((done.stdout + done.stderr).split())[:400] or "nothing"
    how = f"{TOOL} --gpu-reset -i {target}: exit status {done.returncode}"
    if not reset_count and done.returncode in NOT_BEGUN:
        raise ResetRefused(f"{how}, {NOT_BEGUN[done.returncode]}: {output}")
    if not reset_count and IN_USE in output.lower():
        raise ResetRefused(f"{how}: {output}{_opened_by_the_kernel(Path(order.sysfs))}")
    raise ResetFailed(f"{how}, {reset_count} of {len(members)} reported as reset: {output}")


def _opened_by_the_kernel(sysfs: Path) -> str:
    """``nv_drm_dev_load`` (nvidia-drm-drv.c of NVIDIA's open modules) opens each GPU where it sets modes."""
    try:
        sets_modes = (sysfs / "module/nvidia_drm/parameters/modeset").read_text().strip() == "Y"
    except OSError:
        return ""
    return (
        "; the kernel's nvidia_drm has it open (modeset=Y): unload it, or load it with modeset=0" * sets_modes
    )
