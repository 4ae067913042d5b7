"""An image with the package in it: what its first boot enables (systemd.preset(5))."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.tree import laid_over, switch

pytestmark = [pytest.mark.root, pytest.mark.slow]

BRIDGE = "nodeagent-slurm.service"
DAEMON = "nodeagent.service"


def test_presets_enable_the_daemon_and_leave_the_bridge_to_slurm_off(installed: Path, tmp_path: Path) -> None:
    with laid_over(tmp_path, installed) as root:
        for unit in (DAEMON, BRIDGE):
            switch(root, "disable", unit)

        # As systemd does it where /etc/machine-id is empty (machine-id(5)).
        systemctl(root, "preset-all", "--preset-mode=enable-only")

        assert systemctl(root, "is-enabled", DAEMON, BRIDGE) == "enabled\ndisabled\n"


def systemctl(root: Path, *words: str) -> str:
    command = ["systemctl", f"--root={root}", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
