"""Resets GPUs by ``nvidia-smi --gpu-reset``: NVML has no such call. It opens no library itself.

The tool resets a GPU that nobody has open. So whoever has it open is looked for first and named; nobody is
made to let go.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nodeagent.drivers.resetting import Member, Order, ResetFailed, ResetRefused, ResetTimedOut

TOOL: Final = "nvidia-smi"
MAX_NAMED: Final = 8
_ONLY_TOGETHER: Final = ("A100", "A800")
"""Behind switches they need the fabric manager stopped and all of them reset at once, links included."""


def reset(order: Order) -> None:
    """Raises ``ResetRefused``, ``ResetFailed`` and ``ResetTimedOut``."""
    for member in order.members:
        _check(member, Path(order.procfs))
    for member in order.members:
        order.step(f"{TOOL} --gpu-reset of {member.name}")
        _reset(member, order.start_limit_s)


def _check(member: Member, procfs: Path) -> None:
    attributes = member.attributes
    if attributes.get("mig") == "enabled":
        raise ResetRefused(f"{member.name} is partitioned (MIG): its instances must be removed first")
    product = attributes.get("product", "")
    switches = Path("/dev").glob("nvidia-nvswitch[0-9]*")
    if any(name in product for name in _ONLY_TOGETHER) and any(switches):
        raise ResetRefused(f"{member.name} ({product}) cannot be reset alone behind NVSwitches")
    if (minor := attributes.get("minor")) is None:
        raise ResetRefused(f"which device file {member.name} has is not known, so not who has it open")
    if clients := list(_clients(procfs, f"/dev/nvidia{minor}")):
        more = f" and {len(clients) - MAX_NAMED} more" if len(clients) > MAX_NAMED else ""
        raise ResetRefused(f"{member.name} is open in {', '.join(clients[:MAX_NAMED])}{more}")


def _clients(procfs: Path, device: str) -> Iterator[str]:
    """The processes that have the device file open. Raises ``ResetRefused`` where that cannot be seen."""
    for process in sorted(procfs.glob("[0-9]*")):
        try:
            if any(_leads_to(link, device) for link in (process / "fd").iterdir()):
                yield f"{(process / 'comm').read_text().strip()} (pid {process.name})"
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError as error:
            raise ResetRefused(f"who has {device} open cannot be seen: {error}") from error


def _leads_to(link: Path, device: str) -> bool:
    try:
        return str(link.readlink()) == device
    except FileNotFoundError:
        return False


def _reset(member: Member, limit_s: float) -> None:
    target = member.attributes.get("pci") or member.identity
    try:
        done = subprocess.run(
            [TOOL, "--gpu-reset", "-i", target],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise ResetRefused(f"{TOOL} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ResetTimedOut(f"{TOOL} has not ended within {limit_s:g} s") from error
    if done.returncode != 0:
        said = " ".join((done.stdout + done.stderr).split())[:400]
        raise ResetFailed(f"{TOOL} --gpu-reset -i {target}: exit status {done.returncode}: {said}")
