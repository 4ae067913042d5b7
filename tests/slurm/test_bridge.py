"""The bridge on a real cluster of three nodes: what it drains, what it leaves alone, and what it survives."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness.configuration import ROOT
from tests.slurm.cluster import Cluster, cluster
from tests.slurm.node import CODE, FAULT, Bridged, bridged

pytestmark = pytest.mark.root

AT_ONCE = 'resume_after = "0s"'


@pytest.fixture
async def n2(tmp_path: Path, three_nodes: Cluster) -> AsyncIterator[Bridged]:
    async with bridged(tmp_path / "n2", three_nodes, "n2") as node:
        yield node


async def test_a_fault_drains_its_node_alone_with_the_code_where_sinfo_shows_it(
    three_nodes: Cluster, n2: Bridged
) -> None:
    n2.keys = [AT_ONCE]
    await n2.start()
    await n2.acknowledged()
    assert three_nodes.state("n2") == ["IDLE"]

    n2.fail()
    assert await n2.is_drained() == f"NA:{CODE} npu3 (nodeagent #SEQ)"
    listed = three_nodes.run("sinfo", "-R", "--noheader").split()
    assert listed[:2] == [f"NA:{CODE}", "npu3"]
    assert [three_nodes.state(each) for each in ("n1", "n3")] == [["IDLE"], ["IDLE"]]
    shown = int(re.findall(r"#(\d+)", three_nodes.reason("n2"))[0])
    assert (await n2.node.subscriber.raised(CODE, "npu3")).seq == shown

    n2.mend()
    await n2.works()
    assert three_nodes.reason("n2") == ""


async def test_a_chip_that_a_test_of_the_site_takes_out_drains_its_node_until_it_is_given_back(
    three_nodes: Cluster, n2: Bridged
) -> None:
    table = ROOT / "packaging" / "examples" / "reports" / "site-tests.toml"
    n2.keys = [AT_ONCE]
    n2.node.daemon.configure()
    (n2.node.daemon.tables / table.name).write_bytes(table.read_bytes())
    await n2.start()
    await n2.acknowledged()
    report = ("report", "SITE_NCCL_TEST", "npu3", "--sender", "nccl-test")
    at = ("--socket", n2.folder / "c.sock")

    assert (await n2.node.daemon.command(*report, *at))[0] == 0
    assert await n2.is_drained() == "NA:SITE_NCCL_TEST npu3 (nodeagent #SEQ)"
    assert [three_nodes.state(each) for each in ("n1", "n3")] == [["IDLE"], ["IDLE"]]

    assert (await n2.node.daemon.command(*report, "--recover", *at))[0] == 0
    await n2.works()
    assert three_nodes.reason("n2") == ""


async def test_a_drain_of_a_person_is_neither_replaced_nor_ended(three_nodes: Cluster, n2: Bridged) -> None:
    three_nodes.run("scontrol", "update", "nodename=n2", "state=drain", "reason=cable is changed")
    n2.keys = [AT_ONCE]
    await n2.start()
    n2.fail()
    await n2.is_at("ISOLATE")
    await n2.acknowledged()
    assert three_nodes.reason("n2") == "cable is changed"

    n2.mend()
    await n2.is_at("ALLOW")
    await n2.acknowledged()
    assert three_nodes.reason("n2") == "cable is changed"
    assert "DRAIN" in three_nodes.state("n2")


async def test_a_person_takes_a_drained_node_over_with_a_reason_of_his_own(
    three_nodes: Cluster, n2: Bridged
) -> None:
    n2.keys = [AT_ONCE]
    await n2.start()
    n2.fail()
    await n2.is_drained()
    three_nodes.run("scontrol", "update", "nodename=n2", "state=drain", "reason=waits for a new board")

    n2.mend()
    await n2.is_at("ALLOW")
    await n2.acknowledged()
    assert three_nodes.reason("n2") == "waits for a new board"


async def test_a_node_that_cannot_be_told_is_neither_drained_nor_resumed(
    three_nodes: Cluster, n2: Bridged
) -> None:
    n2.keys = [AT_ONCE]
    await n2.start()
    silent = n2.node.node.hang("npu5")
    await n2.is_at("UNKNOWN", "npu5")
    await n2.acknowledged()
    assert three_nodes.state("n2") == ["IDLE"]

    n2.fail()
    await n2.is_drained()
    n2.mend()
    await n2.is_at("ALLOW")
    await n2.acknowledged()
    assert "DRAIN" in three_nodes.state("n2")

    n2.node.node.release(silent)
    await n2.works()


async def test_killed_between_drain_and_acknowledgement_it_drains_no_second_time(
    three_nodes: Cluster, n2: Bridged
) -> None:
    n2.scontrol('/usr/bin/scontrol "$@"; case "$*" in *DRAIN*) echo >>drains; kill -9 $PPID;; esac')
    await n2.start()
    before = await n2.acknowledged()
    n2.fail()
    await n2.is_drained()
    assert n2.bridge is not None
    assert await n2.bridge.wait() == -9
    first = three_nodes.reason("n2")
    assert [each.seq for each in await n2.consumers()] == [before]

    await n2.start_bridge()
    await n2.acknowledged()
    assert (n2.folder / "programs" / "drains").read_text() == "\n"
    assert three_nodes.reason("n2") == first


@pytest.mark.parametrize("away", ["controller", "munge"])
async def test_what_happens_while_slurm_does_not_answer_is_done_when_it_does(
    three_nodes: Cluster, n2: Bridged, away: str
) -> None:
    await n2.start()
    before = await n2.acknowledged()
    three_nodes.end(away)
    n2.fail()
    await n2.comes(lambda: "trying again" in n2.said, "it says that Slurm does not answer")
    assert [each.seq for each in await n2.consumers()] == [before]

    start = three_nodes.start_controller if away == "controller" else three_nodes.start_munge
    start()
    assert await n2.is_drained() == f"NA:{CODE} npu3 (nodeagent #SEQ)"
    await n2.acknowledged()
    assert "Slurm answers again" in n2.said


async def test_a_drain_that_slurmctld_lost_in_a_crash_is_done_again(
    three_nodes: Cluster, n2: Bridged
) -> None:
    await n2.start()
    n2.fail()
    await n2.acknowledged()
    first = three_nodes.reason("n2")
    three_nodes.run("scontrol", "update", "nodename=n2", "state=resume")  # as if it had never been written
    await n2.is_drained()
    assert three_nodes.reason("n2") == first


async def test_a_node_that_got_another_name_is_drained_under_it(tmp_path: Path) -> None:
    with cluster(tmp_path / "slurm", nodes=["old"]) as slurm:
        async with bridged(tmp_path / "node", slurm, "") as node:
            await node.start()
            node.fail()
            await node.is_drained("old")

            slurm.end("controller")
            slurm.kill("old")
            slurm.nodes = ["new"]
            slurm.configure()
            slurm.start_controller()
            slurm.start_node("new")
            assert await node.is_drained("new") == f"NA:{CODE} npu3 (nodeagent #SEQ)"


async def test_a_restart_of_the_daemon_changes_nothing_and_the_drain_ends_after_it(
    three_nodes: Cluster, n2: Bridged
) -> None:
    n2.keys = [AT_ONCE]
    await n2.start()
    n2.fail()
    await n2.is_drained()
    first = three_nodes.reason("n2")
    await n2.node.kill()
    n2.mend()
    await n2.node.start()
    await n2.works()
    assert n2.said.count("is drained") == 1, first


async def test_while_the_daemon_is_away_no_drain_ends(three_nodes: Cluster, n2: Bridged) -> None:
    n2.keys = ['resume_after = "2s"']
    await n2.start()
    n2.fail()
    await n2.is_drained()
    n2.mend()
    await n2.is_at("ALLOW")
    await n2.acknowledged()
    await n2.node.kill()
    await n2.comes(lambda: "the drain goes on" in n2.said, "it asks before it resumes")
    assert "DRAIN" in three_nodes.state("n2")
    await n2.node.start()
    await n2.works()


ACK_AS_ANOTHER = """
import sys
from nodeagent.client import Client
with Client(sys.argv[1]) as client:
    client.ack("slurm", next(client.watch()).position)
"""


async def test_a_name_that_another_user_acknowledges_under_is_refused_in_words(
    three_nodes: Cluster, n2: Bridged
) -> None:
    await n2.start_daemon()
    # Its own user, yet with root's way into the folders of the test.
    another = (
        "setpriv",
        "--reuid=65534",
        "--clear-groups",
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
    )
    acked = await asyncio.create_subprocess_exec(
        *another, sys.executable, "-c", ACK_AS_ANOTHER, n2.node.daemon.socket, cwd=ROOT
    )
    assert await acked.wait() == 0
    await n2.start_bridge()
    assert n2.bridge is not None
    assert await n2.bridge.wait() == 1, n2.said
    assert "consumer 'slurm' belongs to uid:65534" in n2.said.splitlines()[-1]


async def test_of_eight_chips_that_are_reset_together_sinfo_shows_the_one_that_failed_and_its_code(
    three_nodes: Cluster, n2: Bridged
) -> None:
    n2.keys = [AT_ONCE]
    n2.node.mode = "on"
    await n2.start()
    await n2.acknowledged()
    n2.node.node.raise_code("npu3", FAULT)
    assert await n2.is_drained() == f"NA:{CODE} npu3 (nodeagent #SEQ)"
    listed = three_nodes.run("sinfo", "-R", "--noheader")
    assert listed.startswith(f"NA:{CODE} npu3")


async def test_a_worse_fault_renews_the_reason_and_the_comment_lists_both(
    three_nodes: Cluster, n2: Bridged
) -> None:
    n2.keys = [AT_ONCE]
    await n2.start()
    n2.node.node.raise_code("npu1", 0x80A18008)
    assert (await n2.is_drained()).startswith("NA:80A18008 npu1")
    n2.node.node.raise_code("npu3", 0x80DF8402)
    await n2.comes(
        lambda: "NA:80DF8402 npu3" in three_nodes.reason("n2"), f"another reason: {three_nodes.reason('n2')}"
    )
    shown = "Comment=nodeagent: 80DF8402 npu3, 80A18008 npu1"
    await n2.comes(lambda: shown in three_nodes.run("scontrol", "show", "node", "n2"), "the comment")

    n2.node.node.clear_code("npu3", 0x80DF8402)
    n2.node.node.clear_code("npu1", 0x80A18008)
