"""``nodeagent fleet --listen`` as a user runs it, against a real daemon on its socket."""

import http.client
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.cli.conftest import Nodeagent
from tests.harness.daemon import COMMAND
from tests.harness.node import Node, xid_line
from tests.waiting import WAIT_LIMIT_S, Lines

CHIP = "0000:3b:00.0"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node.within(tmp_path_factory.mktemp("page"))
    with node.daemon():
        yield node


@pytest.fixture
def nodes(node: Node, tmp_path: Path) -> Path:
    path = tmp_path / "nodes"
    path.write_text(f"gpu-1 {node.socket}\n")
    return path


@pytest.fixture
def page(nodes: Path) -> Iterator[http.client.HTTPConnection]:
    """A connection to it for one request."""
    command = [*COMMAND, "fleet", "--nodes", str(nodes), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = re.search(r"the page is at (\S+)", Lines(process.stderr).until("the page is at"))
            assert url is not None
            yield http.client.HTTPConnection(urlsplit(url[1]).netloc, timeout=WAIT_LIMIT_S)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_LIMIT_S) == 0


def events(response: http.client.HTTPResponse) -> Iterator[Any]:
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


def test_a_fault_reaches_the_stream_and_its_why_is_that_of_the_command(
    node: Node, page: http.client.HTTPConnection, nodeagent_process: Nodeagent
) -> None:
    page.request("GET", "/events")
    with page.getresponse() as response:
        stream = events(response)
        assert [each["name"] for each in next(stream)["nodes"]] == ["gpu-1"]
        node.write(xid_line(79))
        (row,) = next(
            data["nodes"]
            for data in stream
            if "ISOLATE" in [each["verdict"] for each in data.get("nodes", ())]
        )
    assert [(part["name"], part["codes"]) for part in row["devices"]] == [(CHIP, ["XID_79"])]
    page.request("GET", f"/why?node=gpu-1&device={quote(CHIP)}")
    lines = json.loads(page.getresponse().read())["lines"]
    shown = nodeagent_process("why", CHIP, "--socket", node.socket).out.splitlines()
    assert [line for line in lines if not line.startswith("  since:")] == [
        line for line in shown if not line.startswith("  since:")
    ]
    assert lines[0] == f"{CHIP}: ISOLATE, handling RESCHEDULE"


@pytest.mark.parametrize(
    ("options", "status", "error"),
    [
        (
            ("--listen", "0.0.0.0:0"),
            1,
            "0.0.0.0 is not loopback, and the page is served to",
        ),
        (("--listen", "localhost"), 2, "--listen localhost: a host and a port are needed"),
        (
            ("--listen", "127.0.0.1:0", "--listen-key", "k"),
            2,
            "give --listen-cert and --listen-client-ca",
        ),
        (("--listen-key", "k"), 2, "--listen-cert, --listen-key and --listen-client-ca need --listen"),
        (("--listen", "127.0.0.1:0", "--once"), 2, "leave it out, or leave out --once"),
    ],
)
def test_what_cannot_be_served_is_refused(
    nodes: Path, nodeagent_process: Nodeagent, options: tuple[str, ...], status: int, error: str
) -> None:
    ran = nodeagent_process("fleet", "--nodes", nodes, *options)
    assert ran.status == status
    assert error in " ".join(ran.err.split())
