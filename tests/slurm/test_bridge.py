"""The bridge on a real cluster of three nodes: what it drains, what it leaves alone, and what it survives."""

import re
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster
from tests.slurm.node import CODE, FAULT, bridged

pytestmark = pytest.mark.root

AT_ONCE = 'resume_after = "0s"'


async def test_a_fault_drains_its_node_alone_with_the_code_where_sinfo_shows_it(
    three_nodes: Cluster, tmp_path: Path
) -> None:
    async with bridged(tmp_path / "n2", three_nodes, "n2", keys=[AT_ONCE]) as n2:
        await n2.start_daemon()
        await n2.start_bridge()
        await n2.acknowledged()
        assert three_nodes.state("n2") == ["IDLE"]

        n2.node.node.raise_code("npu3", FAULT)
        assert await n2.is_drained() == f"{CODE} npu3 (nodeagent #SEQ)"
        listed = three_nodes.run("sinfo", "-R", "--noheader").split()
        assert listed[:2] == [CODE, "npu3"]
        assert [three_nodes.state(each) for each in ("n1", "n3")] == [["IDLE"], ["IDLE"]]
        shown = int(re.findall(r"#(\d+)", three_nodes.reason("n2"))[0])
        (event,) = [each for each in n2.node.subscriber.events if each.seq == shown]
        assert (event.code, event.device) == (CODE, "npu3")

        n2.node.node.clear_code("npu3", FAULT)
        await n2.comes(lambda: three_nodes.state("n2") == ["IDLE"], "n2 works again")
        assert three_nodes.reason("n2") == ""
