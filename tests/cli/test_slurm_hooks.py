"""The examples of a Slurm prolog and epilog, run as slurmd does, with a real daemon on emulated chips."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.acting import CHIPS, acting
from tests.cli.conftest import Nodeagent
from tests.cli.live import ROOT

HOOKS = ROOT / "packaging" / "examples" / "slurm"


class Slurmd:
    """Runs a hook with no more environment than slurmd gives one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._nodeagent = folder / "nodeagent"
        self._nodeagent.write_text(f'#!/bin/sh\nexec {sys.executable} -m nodeagent.cli "$@"\n')
        self._nodeagent.chmod(0o755)

    def run(self, hook: str, **variables: str) -> None:
        """The hook must end well: slurmd would drain the node."""
        environment = {
            "NODEAGENT": str(self._nodeagent),
            "NODEAGENT_CONFIG": str(self._folder / "nodeagent.toml"),
            "NODEAGENT_CHIPS": "npu",
            "NODEAGENT_TRIES": "1",
            "PYTHONPATH": str(ROOT),
            **variables,
        }
        done = subprocess.run([HOOKS / hook], env=environment, check=True, capture_output=True, text=True)
        assert done.stdout == ""


@pytest.fixture
def slurmd(tmp_path: Path) -> Slurmd:
    return Slurmd(tmp_path)


def claims(nodeagent: Nodeagent) -> dict[str, list[str]]:
    devices = nodeagent("devices", "-o", "json").json
    return {each["name"]: [claim["job"] for claim in each["claims"]] for each in devices if each["claims"]}


def test_a_job_claims_its_chips_until_it_has_left(
    tmp_path: Path, slurmd: Slurmd, nodeagent: Nodeagent
) -> None:
    with acting(tmp_path):
        slurmd.run("prolog", SLURM_JOB_ID="1234", SLURM_JOB_GPUS="2,3")
        one = claims(nodeagent)
        slurmd.run("prolog", SLURM_JOB_ID="1235", SLURM_JOB_GPUS="3")
        both = claims(nodeagent)
        in_the_way = nodeagent("reset", "npu2", "--dry-run").out
        slurmd.run("epilog", SLURM_JOB_ID="1234")
        after = claims(nodeagent)

    assert one == {"npu2": ["slurm:1234"], "npu3": ["slurm:1234"]}
    assert both == {"npu2": ["slurm:1234"], "npu3": ["slurm:1234", "slurm:1235"]}
    assert "    npu2 is claimed by the job slurm:1234\n" in in_the_way
    assert after == {"npu3": ["slurm:1235"]}


@pytest.mark.parametrize(
    "numbers", [{}, {"SLURM_JOB_GPUS": "0-3"}, {"SLURM_JOB_GPUS": "12"}], ids=["none", "a range", "unknown"]
)
def test_where_it_is_not_clear_which_chips_a_job_has_it_claims_all(
    tmp_path: Path, slurmd: Slurmd, nodeagent: Nodeagent, numbers: dict[str, str]
) -> None:
    with acting(tmp_path):
        slurmd.run("prolog", SLURM_JOB_ID="1234", **numbers)
        assert claims(nodeagent) == {name: ["slurm:1234"] for name in CHIPS}


@pytest.mark.parametrize("hook", ["prolog", "epilog"])
def test_without_a_daemon_the_node_is_not_drained(slurmd: Slurmd, hook: str) -> None:
    slurmd.run(hook, SLURM_JOB_ID="1234", SLURM_JOB_GPUS="0")


def test_the_hooks_can_be_run_where_they_are() -> None:
    assert sorted(hook.name for hook in HOOKS.iterdir() if os.access(hook, os.X_OK)) == ["epilog", "prolog"]
