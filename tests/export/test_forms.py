"""What each form makes of a record, compared with a file; ``--update`` writes the files."""

import json
from itertools import product
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs

import nodeagent
from nodeagent import journal
from nodeagent.core.model import Event as CoreEvent
from nodeagent.core.model import EventKind, Handling, Kind, Level, Verdict
from nodeagent.export import syslog
from nodeagent.export.cloudevents import MEANINGS, cloud_event
from nodeagent.export.otlp import log_record
from nodeagent.export.severity import severity_of
from nodeagent.messages import enums
from nodeagent.messages.pb import types_pb2
from nodeagent.store.records import StoredEvent
from tests.export import given, reference

GOLDEN = Path(__file__).parent / "golden"


def compared(request: pytest.FixtureRequest, name: str, text: str) -> None:
    path = GOLDEN / name
    plain = text.replace(nodeagent.__version__, "VERSION")
    if request.config.getoption("--update"):
        path.write_text(plain, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == plain


def test_cloudevents(request: pytest.FixtureRequest) -> None:
    events = [cloud_event(record) for record in given.records()]

    compared(request, "cloudevents.json", json.dumps(events, indent=1, ensure_ascii=False) + "\n")
    assert set().union(*events) == set(MEANINGS)


def test_opentelemetry_logs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_RESOURCE_ATTRIBUTES", raising=False)
    sent = MessageToDict(encode_logs([log_record(record) for record in given.records()]))
    for resource in sent["resourceLogs"]:  # the SDK's own version
        attributes = resource["resource"]["attributes"]
        resource["resource"]["attributes"] = [e for e in attributes if "telemetry.sdk" not in e["key"]]

    compared(request, "otlp.json", json.dumps(sent, indent=1, ensure_ascii=False) + "\n")


def test_syslog(request: pytest.FixtureRequest) -> None:
    texts = [syslog.message(record, syslog.FACILITIES["local3"], syslog.OWN_ID) for record in given.records()]

    compared(request, "syslog.txt", "".join(f"{text.decode()}\n" for text in texts))


def test_a_syslog_message_is_cut_within_its_text_and_between_characters() -> None:
    record = given.record_of(types_pb2.Event(seq=1, device="d", why="é" * 3000, at=given.AT))

    text = syslog.message(record, 3, syslog.OWN_ID)

    assert syslog.LARGEST_BYTES - 1 <= len(text) <= syslog.LARGEST_BYTES
    assert text.decode().endswith("é")


@pytest.mark.parametrize(
    ("text", "is_good"),
    [
        ("nodeagent@0", True),
        ("ops@32473.1.2", True),
        ("meta", False),
        ("a b@1", False),
        ('a"@1', False),
        ("a]@1", False),
        ("a=@1", False),
        ("x" * 31 + "@1", False),
        ("a@", False),
        ("a@1.", False),
    ],
)
def test_structured_data_has_a_name_with_a_number(text: str, is_good: bool) -> None:
    assert syslog.is_data_id(text) is is_good


def test_an_event_is_as_severe_as_in_the_journal() -> None:
    for kind, verdict, code, injected in product(EventKind, Verdict, ("", "XID_79"), (False, True)):
        message = types_pb2.Event(
            kind=enums.EVENT_KINDS[kind], verdict=enums.VERDICTS[verdict], code=code, injected=injected
        )
        event = CoreEvent(
            kind=kind,
            at_ns=0,
            device="gpu0",
            device_id="gpu0-id",
            device_kind=Kind.CHIP,
            level=Level.NOT_HANDLE,
            verdict=verdict,
            handling=Handling.NONE,
            code=code,
            injected=injected,
        )
        expected = journal.priority(StoredEvent(seq=1, wall_ns=0, event=event))

        assert severity_of(message).syslog == expected, (kind, verdict, code, injected)


def test_the_document_has_the_fields_of_today() -> None:
    text = reference.DOCUMENT.read_text(encoding="utf-8")

    assert text == reference.written(text)
