"""Orders that are taken while the disk is read-only: in force, and reported as lost with the daemon."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Nodeagent, Ran
from tests.cli.order.acting import RESET_NEEDED, Acting, acting
from tests.store.preload import DiskFault


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskFault:
    """That of the daemon's state; it may become read-only."""
    fault = DiskFault(tmp_path / "state", tmp_path)
    for name, value in fault.env.items():
        monkeypatch.setenv(name, value)
    return fault


@pytest.fixture
def node(tmp_path: Path, disk: DiskFault) -> Iterator[Acting]:
    with acting(tmp_path, announce="90s") as node:
        yield node


def give_orders(node: Acting, nodeagent: Nodeagent, *options: str) -> dict[str, Ran]:
    """One of each, every one of which changes something."""
    given = {
        order: nodeagent(*order.split(), *options)
        for order in (
            "isolate npu0 --reason bench",
            "release npu0 --reason done",
            "claim npu1 --job slurm:7",
            "reset npu3 --reason bench",
            "approve npu3 --refuse",
            "quiesce --reason bench",
            "resume",
        )
    }
    node.chips.raise_code("npu6", RESET_NEEDED, severity=2)
    node.stream.until(" for 80E18005")
    return {**given, "approve": nodeagent("approve", "npu6", *options)}


def test_orders_on_a_disk_that_is_well_are_durable(node: Acting, nodeagent: Nodeagent) -> None:
    answers = {
        order: (ran.status, ran.err, ran.json[0]["durable"])
        for order, ran in give_orders(node, nodeagent, "-o", "json").items()
    }
    assert answers == dict.fromkeys(answers, (0, "", True))


def test_every_order_shows_that_it_is_not_durable(
    node: Acting, disk: DiskFault, nodeagent: Nodeagent
) -> None:
    disk.begin("erofs", "w")
    ran_orders = give_orders(node, nodeagent)
    form = nodeagent("isolate", "npu0", "--reason", "bench", "-o", "json")
    disk.end()
    node.stream.until(" cleared ")
    audited = nodeagent("audit", "-n", "9", "-o", "json").json
    standing = nodeagent("status", "-o", "json").json[0]

    for order, ran in ran_orders.items():
        assert ran.status == 0, order
        assert ran.err.startswith("nodeagent: not durable: the store's disk fails (a commit failed: "), order
        assert ran.err.endswith("); this order is lost if the daemon restarts\n"), order
    assert (form.status, form.err, form.json[0]["durable"]) == (0, "", False)
    assert [" (not durable: a commit failed: " in each["result"] for each in audited] == [True] * 9
    assert "npu0" in {each["device"] for each in standing["holds"]}


def test_an_order_that_changes_nothing_has_no_remark_about_the_disk(
    node: Acting, disk: DiskFault, nodeagent: Nodeagent
) -> None:
    disk.begin("erofs", "w")
    nodeagent("isolate", "npu0", "--reason", "bench")

    rehearsed = nodeagent("reset", "npu3", "--dry-run")
    form = nodeagent("reset", "npu3", "--dry-run", "-o", "json").json[0]
    refused = nodeagent("release", "npu1", "--reason", "done")

    assert (rehearsed.status, rehearsed.err, form["durable"]) == (0, "", None)
    assert (refused.status, "durable" in refused.err) == (1, False)
