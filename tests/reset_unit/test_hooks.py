"""The shipped hook around resets of GPUs: what it stops, and that all of it is as it was before."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.daemon.staged import ROOT

HOOK = ROOT / "packaging/hooks/nvidia-clients"

NVIDIA_SMI = """#!/bin/sh
case "$*" in
    *query*) cat {folder}/mode-$2 ;;
    *"-pm 0") echo Disabled >{folder}/mode-$2 ;;
    *"-pm 1") echo Enabled >{folder}/mode-$2 ;;
esac
"""
SYSTEMCTL = """#!/bin/sh
case $1 in
    is-active) [ -e {folder}/runs-$3 ] ;;
    stop) rm {folder}/runs-$2 ;;
    start) touch {folder}/runs-$2 ;;
esac
"""


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """GPU 1b in persistence mode, 43 not; DCGM and a unit of the site's run. All of it are files here."""
    for name, script in (("nvidia-smi", NVIDIA_SMI), ("systemctl", SYSTEMCTL)):
        tool = tmp_path / "bin" / name
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(script.format(folder=tmp_path))
        tool.chmod(0o755)
    (tmp_path / "mode-0000:1b:00.0").write_text("Enabled\n")
    (tmp_path / "mode-0000:43:00.0").write_text("Disabled\n")
    (tmp_path / "runs-nvidia-dcgm.service").touch()
    (tmp_path / "runs-site.service").touch()
    return tmp_path


def hook(node: Path, *words: str, vendor: str = "nvidia") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HOOK, *words],
        env={
            "NODEAGENT_HOOK_PATH": f"{node / 'bin'}:{os.environ['PATH']}",
            "NODEAGENT_HOOK_STATE": str(node / "state"),
            "NODEAGENT_VENDOR": vendor,
            "NODEAGENT_ACTION": "GPU-1/reset#1",
            "NODEAGENT_PCI": "0000:1b:00.0 0000:43:00.0",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def standing(node: Path) -> dict[str, str]:
    return {
        path.name: path.read_text().strip()
        for path in sorted(node.iterdir())
        if path.name.startswith(("mode-", "runs-"))
    }


def test_what_holds_gpus_for_no_job_lets_go_and_is_as_it_was_afterwards(node: Path) -> None:
    before = standing(node)
    assert hook(node, "stop", "site.service").returncode == 0
    assert standing(node) == {"mode-0000:1b:00.0": "Disabled", "mode-0000:43:00.0": "Disabled"}
    assert hook(node, "start").returncode == 0
    assert standing(node) == before
    assert list((node / "state").iterdir()) == []


def test_the_reset_of_another_vendor_stops_nothing(node: Path) -> None:
    before = standing(node)
    assert hook(node, "stop", vendor="ascend").returncode == 0
    assert standing(node) == before


def test_a_unit_that_does_not_stop_calls_the_reset_off_and_what_was_stopped_starts_again(node: Path) -> None:
    (node / "bin/systemctl").write_text(SYSTEMCTL.format(folder=node).replace("stop) rm", "stop) false"))
    assert hook(node, "stop").returncode == 1
    assert hook(node, "start").returncode == 0
    assert standing(node)["mode-0000:1b:00.0"] == "Enabled"
