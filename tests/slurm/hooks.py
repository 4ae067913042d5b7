"""Prolog and epilog of a cluster, the chips that Slurm gives, and what the daemon says is claimed."""

import os
import stat
import sys
from pathlib import Path
from typing import Final

from tests.harness.configuration import ROOT
from tests.slurm.node import Bridged

HOOKS: Final = ROOT / "packaging" / "examples" / "slurm"


def hooked(folder: Path, **env: str) -> dict[str, str]:
    """What of slurm.conf makes the hooks those of a daemon that lies beside, in the folder of its node. Their
    records of jobs are where no daemon looks, unless ``env`` has ``NODEAGENT_RECORDS=""``.
    """
    settings = {"PrologFlags": "Alloc", "GresTypes": "npu,gpu"}
    for hook in ("prolog", "epilog"):
        script = folder / f"{hook}.sh"
        own = {
            "NODEAGENT": f"{sys.prefix}/bin/nodeagent",
            "NODEAGENT_CONTROL_SOCKET": f"{folder}/$SLURMD_NODENAME/c.sock",
            "NODEAGENT_HOOKS": f"{folder}/hooks-$SLURMD_NODENAME",
            "NODEAGENT_RECORDS": f"{folder}/records",
            "NODEAGENT_PAUSE_S": "0.1",
            "NODEAGENT_TRIES": "2000",
            **env,
        }
        words = " ".join(f'{key}="{value}"' for key, value in own.items())
        script.write_text(f"#!/bin/sh\nexport {words}\nexec {HOOKS / hook}\n")
        script.chmod(0o755)
        settings[hook.capitalize()] = str(script)
    return settings


def gres(folder: Path) -> dict[str, str]:
    """gres.conf, with a file for each chip, by its name: as Slurm knows the places of chips."""
    (folder / "dev").mkdir()
    for name in (*(f"npu{number}" for number in range(8)), "gpu0", "gpu1"):
        os.mknod(folder / "dev" / name, stat.S_IFCHR, os.makedev(1, 3))  # Slurm takes no other file for a GPU
    lines = (f"Name=npu File={folder}/dev/npu[0-7]", f"Name=gpu File={folder}/dev/gpu[0-1]")
    return {"gres.conf": "\n".join((*lines, ""))}


async def claims(node: Bridged) -> dict[str, list[str]]:
    devices = (await node.node.snapshot()).devices
    return {each.name: [claim.job for claim in each.claims] for each in devices if each.claims}


async def claimed(node: Bridged, wanted: dict[str, list[str]]) -> None:
    """Wait until just these are claimed: on a slow machine Slurm, or the daemon, may answer too late."""

    async def found() -> bool:
        return await claims(node) == wanted

    await node.node.daemon.comes(found, f"claims {wanted}")
