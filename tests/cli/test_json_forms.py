"""What ``-o json`` shows of each message, byte for byte: programs read it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeagent.cli import forms
from nodeagent.outlets.pb import control_service_pb2, fault_service_pb2, types_pb2
from tests.outlets.filled import filled

GOLDEN = dict(
    line.split(" ", 1) for line in (Path(__file__).parent / "json_forms.txt").read_text().splitlines()
)

FORMS: dict[Any, Callable[[Any], forms.Form]] = {
    types_pb2.Event: forms.event,
    types_pb2.Reason: forms.reason,
    types_pb2.Device: forms.device,
    types_pb2.Condition: forms.condition,
    types_pb2.Promotion: forms.promotion,
    types_pb2.Hold: forms.hold,
    types_pb2.Reset: forms.action,
    types_pb2.Source: forms.source,
    fault_service_pb2.Consumer: forms.consumer,
    fault_service_pb2.CodeExplanation: forms.explanation,
    fault_service_pb2.Contribution: forms.contribution,
    control_service_pb2.ResetPlan: forms.plan,
    control_service_pb2.AuditEntry: forms.audit_entry,
}


@pytest.mark.parametrize("kind", FORMS, ids=lambda kind: str(kind.DESCRIPTOR.name))
def test_the_form_of_a_message_is_as_it_was_written_down(kind: Any) -> None:
    shown = FORMS[kind](filled(kind))
    assert msgspec.json.encode(shown).decode() == GOLDEN[kind.DESCRIPTOR.name]
