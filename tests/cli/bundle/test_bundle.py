"""``nodeagent bundle`` as an operator runs it: with a daemon, without one, with one that hangs."""

import json
import os
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeagent.cli.bundle.items import NAMES
from tests.cli.conftest import Nodeagent
from tests.cli.documented import documented
from tests.harness.node import Node, daemon_of, xid_line

SECRET = "Tr0ub4dor-and-3"
SLOW = ("kernel", "hardware", "versions", "nvidia", "ascend", "journal", "machine")
"""Items that depend on the machine on which this runs."""


def archived(path: Path) -> dict[str, str]:
    """The texts of the archive by their names below its folder."""
    with tarfile.open(path) as opened:
        return {
            each.name.partition("/")[2]: opened.extractfile(each).read().decode()  # type: ignore[union-attr]
            for each in opened
        }


def without(*items: str) -> list[str]:
    return [argument for item in items for argument in ("--without", item)]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """A daemon ran here, and has seen a fault. A drop-in holds a secret."""
    node = Node.within(tmp_path_factory.mktemp("bundle"))
    with node.daemon() as stream:
        node.write(xid_line(79))
        stream.until("XID_79")
    drop_ins = node.configuration.with_name("nodeagent.d")
    drop_ins.mkdir()
    (drop_ins / "10-site.toml").write_text(f'# webhook_token = "{SECRET}"\n[agent]\nnode_name = "gpu-17"\n')
    return node


@pytest.fixture
def collected(node: Node, nodeagent_process: Nodeagent, tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "bundle.tar.gz"
    arguments = ("bundle", "--yes", "--file", path, *without(*SLOW), "--config", node.configuration)
    ran = nodeagent_process(*arguments, environment={"REPORT_PASSWORD": SECRET, "OTHER": "kept"})
    assert (ran.status, str(path) in ran.out) == (0, True)
    return archived(path)


def test_without_a_daemon_the_store_is_collected_and_no_secret_is_in_it(collected: dict[str, str]) -> None:
    manifest = json.loads(collected["manifest.json"])
    assert (manifest["node"], manifest["left_out"]) == ("gpu-17", list(SLOW))
    assert json.loads(collected["status.json"])["node"]["verdict"] == "ALLOW"
    assert (
        json.loads(collected["why.jsonl"].splitlines()[0])["contributions"][0]["reason"]["code"] == "XID_79"
    )
    assert "XID_79" in collected["events.jsonl"]
    assert "quick_check: ok" in collected["store.txt"]
    drop_in = next(text for name, text in collected.items() if name.endswith("nodeagent.d/10-site.toml"))
    assert drop_in.startswith('# webhook_token = "[redacted]"\n[agent]\n')
    assert not [name for name, text in collected.items() if SECRET in text]
    by_file = {each["file"]: each for each in manifest["files"]}
    assert "this is from its store" in by_file["status.json"]["remarks"]
    commands = [each for each in manifest["files"] if each["source"].startswith("nodeagent ")]
    assert [each["source"] for each in commands if each["error"]] == []


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[Node]:
    node = Node.within(tmp_path)
    with node.daemon() as stream:
        node.write(xid_line(79))
        stream.until("XID_79")
        pid = daemon_of(node.socket)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield node
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_daemon_that_hangs_costs_seconds_and_its_process_is_shown(
    hung: Node, nodeagent_process: Nodeagent, tmp_path: Path
) -> None:
    path = tmp_path / "bundle.tar.gz"
    left_out = [name for name in NAMES if name not in ("status", "process", "events")]
    ran = nodeagent_process(
        "bundle", "-y", "--file", path, *without(*left_out), "--config", hung.configuration
    )
    assert ran.status == 0
    texts = archived(path)
    assert "XID_79" in texts["status.txt"] + texts["events.jsonl"]
    assert "State:\tT (stopped)" in texts["process.txt"]


def test_a_store_that_is_damaged_and_a_configuration_that_is_wrong_are_named_and_the_rest_is_collected(
    nodeagent_process: Nodeagent, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "store.db").write_bytes(b"garbage" * 1000)
    configuration = tmp_path / "nodeagent.toml"
    configuration.write_text(f'[agent]\nstate_dir = "{state}"\nsocket = "{tmp_path}/n.sock"\n')
    kept = ("status", "store", "configuration")
    left_out = [name for name in NAMES if name not in kept]
    arguments = ("bundle", "-y", "-o", "json", *without(*left_out), "--config", configuration)
    result = nodeagent_process(*arguments, "--file", tmp_path / "damaged.tar.gz").json[0]
    assert set(result) == documented()["bundle"]
    by_file = {each["file"]: each for each in result["files"]}
    assert "cannot be read as a store of nodeagent" in archived(tmp_path / "damaged.tar.gz")["store.txt"]
    assert "cannot be read as a store" in _of_status(result)["remarks"]
    assert by_file["configuration/values.json"]["error"] == ""
    configuration.write_text("[agent\n")
    ran = nodeagent_process(*arguments, "--file", tmp_path / "wrong.tar.gz")
    assert (ran.status, "the configuration cannot be used" in ran.err) == (0, True)


def _of_status(result: Any) -> Any:
    return next(each for each in result["files"] if each["item"] == "status")


def test_nothing_is_written_without_a_yes_and_no_file_is_replaced(
    nodeagent: Nodeagent, tmp_path: Path
) -> None:
    path = tmp_path / "bundle.tar.gz"
    refused = nodeagent("bundle", "--file", path)
    assert (refused.status, "--yes is needed" in refused.err, path.exists()) == (2, True, False)
    path.write_text("of another day")
    refused = nodeagent("bundle", "--yes", "--file", path)
    reason = f"nodeagent: {path} is there already, and is not replaced; name another place with --file\n"
    assert (refused.status, refused.err, path.read_text()) == (1, reason, "of another day")


def test_each_item_is_listed_with_its_sources(nodeagent: Nodeagent) -> None:
    listed = nodeagent("bundle", "--list", *without("journal"), "-o", "json").json
    assert [each["item"] for each in listed] == [name for name in NAMES if name != "journal"]
    assert all(each["from"] and each["what"] for each in listed)
