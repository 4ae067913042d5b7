"""What the prolog makes of answers of Slurm's commands that no cluster here gives: other forms, commands that
fail. Programs of that name print them; the daemon is a socket that listens.
"""

import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.harness.configuration import ROOT
from tests.slurm.hooks import HOOKS

SHOWN: Final = """\
JobId=7 JobName={name}
   UserId=u(1000) GroupId=g(1000) MCS_label=N/A
   NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   JOB_GRES=gpu:2
     Nodes={nodes} CPU_IDs=0 Mem=0 GRES={gres}
   MinCPUsNode=1 MinMemoryNode=0 MinTmpDiskNode=0
   Comment={comment}
"""


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Path]:
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(tmp_path / "c"))
        daemon.listen()
        yield tmp_path / "c"


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def claimed(
    listening: Path, shown: str, *, hostnames: str = 'echo "$3" | tr , "\\n"', **environ: str
) -> Sequence[str]:
    """The chips that it claims at once, "again" where it is to try again; none where there is none."""
    folder = listening.parent
    commands = folder / "bin"
    commands.mkdir()
    (folder / "shown").write_text(shown)
    program(commands / "scontrol", f'[ "$2" = hostnames ] || exec cat {folder}/shown\n{hostnames}')
    program(commands / "squeue", "echo 7")
    program(commands / "logger", "")
    program(commands / "nodeagent", f'echo "$@" >>{folder}/claims')
    script = folder / "prolog"
    text = (HOOKS / "prolog").read_text()
    assert "\nPATH=/usr/sbin" in text
    script.write_text(text.replace("\nPATH=", f"\nPATH={commands}:"))
    own = {
        "PATH": "/bin",
        "NODEAGENT": str(commands / "nodeagent"),
        "NODEAGENT_CONTROL_SOCKET": str(listening),
        "NODEAGENT_HOOKS": str(folder / "here"),
        "NODEAGENT_RECORDS": str(folder / "records"),
        "NODEAGENT_TRIES": "0",
        "SLURM_JOB_ID": "7",
        "SLURMD_NODENAME": "n1",
    }
    kept = {name: value for name, value in {**own, **environ}.items() if value}
    done = subprocess.run(
        ["sh", str(script)], env=kept, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    is_here = (folder / "here/7").exists()
    if not (folder / "claims").exists():
        return ["again"] if is_here else []
    (said,) = (folder / "claims").read_text().splitlines()
    assert is_here
    return said.split()[3:]


def shown(gres: str, nodes: str = "n1", name: str = "x", comment: str = "") -> str:
    return SHOWN.format(gres=gres, nodes=nodes, name=name, comment=comment)


@pytest.mark.parametrize(
    ("gres", "chips"),
    [
        ("gpu:a100-sxm4-80gb:2(IDX:0,3)", ["gpu0", "gpu3"]),
        ("gpu:a100:2(IDX:0-1),npu:1(IDX:5)", ["gpu0", "gpu1", "npu5"]),
        ("gpu:1(IDX:1),shard:1(0/4,1/4)", ["gpu1"]),
        ("shard:a100:1(0/4,1/4)", []),
        ("gpu(CNT:2)", ["--all"]),
        ("gpu:1(IDX:99999)", ["--all"]),
    ],
)
def test_the_forms_of_what_a_job_was_given(listening: Path, gres: str, chips: Sequence[str]) -> None:
    assert claimed(listening, shown(gres)) == chips


def test_a_job_as_26_05_prints_it(listening: Path) -> None:
    printed = (ROOT / "tests/fixtures/slurm/job-26.05.4.txt").read_text()
    job = printed.partition("JobId=")[2].partition(" ")[0]
    assert claimed(listening, printed.replace(job, "7")) == ["gpu0", "npu0", "npu1"]


@pytest.mark.parametrize("gpus", ["", "3"])
@pytest.mark.parametrize("fails", ["exit 1", "exec no-such-program"])
def test_where_the_names_of_nodes_are_not_told_nothing_is_taken_for_certain(
    listening: Path, fails: str, gpus: str
) -> None:
    """It goes by what Slurm has put into the environment, or tries again."""
    found = claimed(listening, shown("gpu:2(IDX:0-1)"), hostnames=f"{fails} 2>&-", SLURM_JOB_GPUS=gpus)
    assert found == (["gpu3"] if gpus else ["again"])


def test_without_the_name_of_the_node_that_of_the_machine_counts(listening: Path) -> None:
    here = os.uname().nodename.partition(".")[0]
    assert claimed(listening, shown("gpu:2(IDX:0-1)", here), SLURMD_NODENAME="") == ["gpu0", "gpu1"]


def test_the_name_of_a_node_is_no_pattern(listening: Path) -> None:
    assert claimed(listening, shown("gpu:2(IDX:0-1)", "nx1"), SLURMD_NODENAME="n.1") == []


@pytest.mark.parametrize("ends_a_line", ["\r", "\v", "\f", "\x85", "\u2028"], ids=ascii)
def test_only_a_line_feed_ends_a_line(listening: Path, ends_a_line: str) -> None:
    forged = f"x{ends_a_line}   JOB_GRES=npu:8{ends_a_line}     Nodes=n1 CPU_IDs=0 Mem=0 GRES=npu:8(IDX:0-7)"
    assert claimed(listening, shown("gpu:1(IDX:1)", name=forged, comment=forged)) == ["gpu1"]
