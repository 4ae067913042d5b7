"""``nodeagent slurm health``, run by a real slurmd as its HealthCheckProgram: it drains the node itself; and
``nodeagent slurm check`` on a real cluster.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.configuration import ROOT
from tests.harness.daemon import COMMAND
from tests.slurm.cluster import Cluster, cluster
from tests.slurm.node import CODE, Bridged, bridged
from tests.waiting import until

pytestmark = pytest.mark.root


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Cluster]:
    script = tmp_path / "health"
    own = f'--config "{tmp_path}/$SLURMD_NODENAME/nodeagent.toml" --stamp "{tmp_path}/well-$SLURMD_NODENAME"'
    log = f'>>"{tmp_path}/health-$SLURMD_NODENAME.log" 2>&1'
    # slurmd gives it no PATH, and does not say where slurm.conf is.
    conf = f'SLURM_CONF="{tmp_path}/slurm/slurm.conf"'
    script.write_text(
        f'#!/bin/sh\nexport {conf}\nexec "{sys.prefix}/bin/nodeagent" slurm health {own} {log}\n'
    )
    script.chmod(0o755)
    settings = {
        "HealthCheckProgram": str(script),
        "HealthCheckInterval": "1",
        "HealthCheckNodeState": "ANY",
    }
    with cluster(tmp_path / "slurm", nodes=("n1",), settings=settings) as made:
        yield made


@pytest.fixture
async def n1(tmp_path: Path, slurm: Cluster) -> AsyncIterator[Bridged]:
    async with bridged(tmp_path / "n1", slurm, "", keys=['resume_after = "0s"']) as node:
        await node.start_daemon()
        yield node


def said(node: Bridged) -> str:
    file = node.folder.parent / "health-n1.log"
    return file.read_text() if file.exists() else ""


async def said_again(node: Bridged, words: str) -> None:
    """Wait until a check that has begun from now on says so."""
    before = said(node).count(words)
    await until(lambda: said(node).count(words) >= before + 2, f"{words}\n{said(node)}")


async def test_it_drains_a_faulty_node_and_resumes_it_when_it_is_well(slurm: Cluster, n1: Bridged) -> None:
    n1.fail()
    await n1.is_drained("n1")
    raised = (await n1.node.subscriber.raised(CODE, "npu3")).seq
    # A check that finds the daemon busy knows no number; the next one adds it.
    reason = f"NA:{CODE} npu3 (nodeagent #{raised})"
    await n1.comes(lambda: slurm.reason("n1") == reason, f"{reason}\n{said(n1)}")

    n1.mend()
    await n1.comes(lambda: slurm.state("n1") == ["IDLE"], "n1 works again")


async def test_it_leaves_the_drain_of_a_person(slurm: Cluster, n1: Bridged) -> None:
    slurm.run("scontrol", "update", "nodename=n1", "state=drain", "reason=cable is changed")
    n1.fail()
    await said_again(n1, "node n1 is bad, and takes no work: cable is changed")
    assert slurm.reason("n1") == "cable is changed"


async def test_a_node_is_judged_without_the_daemon_too(slurm: Cluster, n1: Bridged) -> None:
    n1.fail()
    await n1.node.kill()
    assert await n1.is_drained("n1") == f"NA:{CODE} npu3 (nodeagent)"


async def test_a_program_gets_what_it_did_as_fields(slurm: Cluster, n1: Bridged) -> None:
    stamp = ("--stamp", n1.folder / "stamp", "--config", n1.node.daemon.config)
    _, fields = await fields_of(slurm, "health", *stamp)
    assert set(fields) == {"standing", "done", "reasons"}
    assert fields["standing"] == "well"


async def test_a_program_gets_what_does_not_fit_as_fields(slurm: Cluster, n1: Bridged) -> None:
    status, fields = await fields_of(slurm, "check", "--config", n1.node.daemon.config)
    assert set(fields) == {"misfits"}
    assert all(set(each) == {"file", "key", "value", "text"} for each in fields["misfits"])
    assert "slurm.conf" in {each["file"] for each in fields["misfits"]}
    assert status == 1


async def fields_of(slurm: Cluster, *words: str | Path) -> tuple[int | None, dict[str, Any]]:
    """Exit status and object of ``nodeagent slurm WORDS``."""
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, "slurm", *words, "-o", "json"),
        cwd=ROOT,
        env={**os.environ, **slurm.env, "SLURMD_NODENAME": "n1"},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    return process.returncode, json.loads(out)
