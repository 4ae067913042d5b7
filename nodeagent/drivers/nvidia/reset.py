"""Resets GPUs by ``nvidia-smi --gpu-reset``: NVML has no such call. It opens no library itself.

The tool resets a GPU that nobody has open. So whoever has it open is looked for first and named; nobody is
made to let go. Its exit status alone is not believed: no poll shows whether an Xid was cured, so that each
GPU must be told as reset.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nodeagent.drivers.resetting import Member, Order, ResetFailed, ResetRefused, ResetTimedOut

TOOL: Final = "nvidia-smi"
RESET_WORDS: Final = "successfully reset"
"""In a line of the tool's for each GPU."""

MAX_NAMED: Final = 8
SWITCHES: Final = "/dev/nvidia-nvswitch"


def reset(order: Order) -> None:
    """Those that are linked in one go, as the tool wants it.

    Raises ``ResetRefused``, ``ResetFailed`` and ``ResetTimedOut``.
    """
    procfs = Path(order.procfs)
    for member in order.members:
        _check(member, procfs)
    if len(order.members) > 1 and (holders := _named(_clients(procfs, SWITCHES))):
        raise ResetRefused(f"GPUs that are linked are reset with their switches, open in {holders}")
    order.step(f"{TOOL} --gpu-reset")
    _reset(order.members, order.start_limit_s)


def _check(member: Member, procfs: Path) -> None:
    attributes = member.attributes
    if attributes.get("mig") == "enabled":
        raise ResetRefused(f"{member.name} is partitioned (MIG): its instances must be removed first")
    if (minor := attributes.get("minor")) is None:
        raise ResetRefused(f"which device file {member.name} has is not known, so not who has it open")
    if holders := _named(_clients(procfs, f"/dev/nvidia{minor}")):
        raise ResetRefused(f"{member.name} is open in {holders}")


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


def _reset(members: tuple[Member, ...], limit_s: float) -> None:
    target = ",".join(member.attributes.get("pci") or member.identity for member in members)
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
    told = sum(RESET_WORDS in line for line in done.stdout.splitlines())
    if done.returncode != 0 or told < len(members):
        said = " ".join((done.stdout + done.stderr).split())[:400] or "nothing"
        raise ResetFailed(
            f"{TOOL} --gpu-reset -i {target}: exit status {done.returncode},"
            f" {told} of {len(members)} told as reset: {said}"
        )
