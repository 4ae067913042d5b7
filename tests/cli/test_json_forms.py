"""What ``-o json`` shows of each message, byte for byte: programs read it."""

from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf.message import Message

from nodeagent.cli.shared import json_forms
from nodeagent.messages.pb import control_service_pb2, fault_service_pb2, types_pb2
from tests.client.filled import filled

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


def test_a_device_that_nobody_holds_is_told_apart_from_one_of_which_nothing_is_known() -> None:
    free = types_pb2.Device(holders=types_pb2.Holders())
    assert (json_forms.form(free)["holders"], json_forms.form(types_pb2.Device())["holders"]) == ([], None)
