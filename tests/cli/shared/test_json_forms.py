"""What ``-o json`` shows of each message, byte for byte: programs read it.

The fields that docs/commands.md lists are those that the commands print, against a real daemon.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from click.testing import CliRunner
from google.protobuf.message import Message

from nodeagent.cli.main import main
from nodeagent.cli.shared import json_forms
from nodeagent.client import Client
from nodeagent.messages.pb import control_service_pb2, fault_service_pb2, types_pb2
from tests.cli.documented import documented
from tests.cli.order.supervising import supervising
from tests.client.filled import filled
from tests.harness.node import Node

GOLDEN = dict(
    line.split(" ", 1) for line in (Path(__file__).parent / "json_forms.txt").read_text().splitlines()
)

SHOWN = (
    types_pb2.Event,
    types_pb2.Reason,
    types_pb2.Device,
    types_pb2.Condition,
    types_pb2.Promotion,
    types_pb2.Hold,
    types_pb2.Reset,
    types_pb2.Source,
    types_pb2.Job,
    types_pb2.JobNote,
    fault_service_pb2.Consumer,
    fault_service_pb2.CodeExplanation,
    fault_service_pb2.Contribution,
    control_service_pb2.ResetPlan,
    control_service_pb2.AuditEntry,
    control_service_pb2.LevelChange,
    control_service_pb2.DeviceChange,
)


@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: str(kind.DESCRIPTOR.name))
def test_no_key_of_a_form_goes_moves_or_changes_though_others_may_follow(kind: type[Message]) -> None:
    shown = json_forms.form(filled(kind))
    golden = GOLDEN[kind.DESCRIPTOR.name]
    assert msgspec.json.encode(_without_new(shown, msgspec.json.decode(golden))).decode() == golden


def _without_new(shown: Any, golden: Any) -> Any:
    """What is shown, without the keys that follow those written down."""
    if isinstance(golden, dict) and isinstance(shown, dict):
        kept = islice(shown.items(), len(golden))
        return {key: _without_new(value, golden.get(key)) for key, value in kept}
    if isinstance(golden, list) and isinstance(shown, list) and len(golden) == len(shown):
        return [_without_new(*pair) for pair in zip(shown, golden, strict=True)]
    return shown


def test_what_is_not_set_is_null_and_never_left_out() -> None:
    shown = json_forms.form(types_pb2.Hold(id="h1"))
    assert shown["until"] is None
    assert list(shown) == list(msgspec.json.decode(GOLDEN["Hold"]))


def test_a_device_without_users_differs_from_one_with_unknown_users() -> None:
    free = types_pb2.Device(holders=types_pb2.Holders())
    assert (json_forms.form(free)["holders"], json_forms.form(types_pb2.Device())["holders"]) == ([], None)


JOB: Final = f"pid:{os.getpid()}"
DEVICE: Final = "0000:3b:00.0"
XID: Final = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
CALLED: Final[Mapping[str, Sequence[str]]] = {
    "status": (),
    "scan": (),
    "devices": (),
    "why": (DEVICE,),
    "explain": ("XID_79",),
    "events": (),
    "isolate": (DEVICE, "--reason", "test"),
    "release": (DEVICE, "--reason", "test", "--force"),
    "quiesce": ("--reason", "test"),
    "resume": (),
    "report": ("110001010", "node", "--sender", "CCAE"),
    "claim": ("--job", "test:1", "--left"),
    "reset": (DEVICE, "--dry-run"),
    "audit": (),
    "consumers": (),
    "consumers rewind": ("test", "--to", "0"),
    "consumers delete": ("test",),
    "tables check": (),
    "version": (),
    "config check": (),
    "config show": (),
    "job list": (),
    "job show": (JOB,),
    "job stop": (JOB, "--reason", "test"),
    "job rerun": (JOB, "--reason", "test"),
    "forget": (DEVICE, "--reason", "test", "--force"),
}
"""In an order in which each has something to print. ``approve`` needs a proposal: see test_orders_actions,
``job replay`` a file: see test_job_replay, ``slurm health`` and ``slurm check`` a Slurm: see
tests/slurm/test_health, and ``rebaseline`` a GPU: see tests/stories/test_gpu_links_kept. For ``bundle`` see
test_bundle.
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A chip that is isolated, and a consumer."""
    node = Node.within(tmp_path_factory.mktemp("fields"))
    with node.daemon() as stream:
        node.write(XID)
        stream.until("XID_79")
        with Client(str(node.socket)) as client:
            client.ack("test", next(iter(client.watch(consumer="test"))).position)
        with supervising(node.socket.with_name("jobs.sock")):
            yield node


def printed(node: Node, words: Sequence[str]) -> Mapping[str, Any]:
    """The first object that the command prints; the exit status is not looked at."""
    done = CliRunner().invoke(main, [*words, "-o", "json"], env={"NODEAGENT_CONFIG": str(node.configuration)})
    said: Mapping[str, Any] = json.loads(done.stdout.splitlines()[0])
    return said


@pytest.mark.parametrize("command", CALLED)
def test_a_command_prints_the_fields_that_are_listed(node: Node, command: str) -> None:
    assert set(printed(node, [*command.split(), *CALLED[command]])) == documented()[command]


def test_every_row_is_called_or_shares_one() -> None:
    elsewhere = {"bundle", "replay", "job replay", "approve", "slurm health", "slurm check", "rebaseline"}
    assert documented().keys() - CALLED.keys() == elsewhere
