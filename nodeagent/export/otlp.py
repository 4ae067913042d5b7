"""OpenTelemetry logs by OTLP over HTTP: a record as a log record, sent by the official exporter.

Its ``export`` is called directly. The SDK's processors are not used: they drop records where their queue is
full, and drop what an exporter failed to send. The exporter reports only success or failure, counts a
redirection as success, and does not look at a partial success; so the receiver's answer is read here, too.
This module needs the packages of the extra ``otlp``.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final
from urllib.parse import SplitResult

import requests
from google.protobuf.message import DecodeError
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

import nodeagent
from nodeagent.export.connection import TlsFiles, tls_context
from nodeagent.export.records import ExportRecord
from nodeagent.export.retries import TAKEN, SendOutcome, SendResult, http_result

MOST_TOGETHER: Final = 64
_PATH: Final = "/v1/logs"
_SCOPE: Final = InstrumentationScope("nodeagent.export", nodeagent.__version__)


def log_record(record: ExportRecord) -> ReadableLogRecord:
    """``log.record.uid`` is the key; each key of the record is an attribute ``nodeagent.KEY``."""
    evidence = record.data.get("evidence") or {}
    attributes: dict[str, Any] = {
        "log.record.uid": record.id,
        **{f"nodeagent.{key}": value for key, value in record.keys().items()},
        **{f"nodeagent.evidence.{key}": value for key, value in evidence.items()},
    }
    return ReadableLogRecord(
        log_record=LogRecord(
            timestamp=record.at_ns,
            observed_timestamp=record.at_ns,
            severity_number=SeverityNumber(record.severity.opentelemetry),
            severity_text=record.severity.text,
            body=record.text,
            attributes=attributes,
            event_name=f"nodeagent.{record.kind}",
        ),
        resource=_resource(record.node, record.node_id),
        instrumentation_scope=_SCOPE,
    )


@cache
def _resource(node: str, node_id: str) -> Resource:
    """With what ``OTEL_RESOURCE_ATTRIBUTES`` has in addition. A process exports one node."""
    return Resource.create(
        {
            "service.name": "nodeagent",
            "service.version": nodeagent.__version__,
            "service.instance.id": node_id,
            "host.name": node,
            "host.id": node_id,
        }
    )


class OtlpDestination:
    """``timeout_s`` is for one attempt, in which the exporter may try several times."""

    def __init__(
        self, url: SplitResult, *, tls: TlsFiles, headers: Mapping[str, str], timeout_s: float, gzip: bool
    ) -> None:
        self.most = MOST_TOGETHER
        tls_context(tls)  # it reports files that cannot be used
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # failures are reported by the delivery
        self._session = _RecordingSession()
        self._exporter = OTLPLogExporter(
            endpoint=url.geturl() if url.path not in ("", "/") else url._replace(path=_PATH).geturl(),
            certificate_file=str(tls.ca) if tls.ca else None,
            client_key_file=str(tls.key) if tls.key else None,
            client_certificate_file=str(tls.cert) if tls.cert else None,
            headers=dict(headers),
            timeout=timeout_s,
            compression=Compression.Gzip if gzip else Compression.NoCompression,
            session=self._session,
        )

    def send(self, records: Sequence[ExportRecord]) -> SendResult:
        self._session.forget()
        result = self._exporter.export([log_record(record) for record in records])
        answer = self._session.answer
        if answer is None:
            return SendResult(
                outcome=SendOutcome.FAILED, reason=f"no answer: {self._session.failure or 'unknown'}"
            )
        sent = http_result(answer.status_code, answer.reason, answer.headers.get("Retry-After"), time.time())
        if sent.outcome is not SendOutcome.TAKEN:
            return sent
        if result is not LogRecordExportResult.SUCCESS:
            return SendResult(outcome=SendOutcome.FAILED, reason="the exporter failed after an answer")
        return _partial(answer.content)

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def _partial(content: bytes) -> SendResult:
    """A receiver may take a request and reject records of it (OTLP, section on partial success)."""
    response = ExportLogsServiceResponse()
    try:
        response.ParseFromString(content)
    except DecodeError:
        return TAKEN  # a receiver that answers in another form has taken all, by its status
    rejected = response.partial_success.rejected_log_records
    if not rejected:
        return TAKEN
    reason = f"{rejected} records rejected: {response.partial_success.error_message or 'no reason given'}"
    return SendResult(outcome=SendOutcome.REJECTED, reason=reason)


class _RecordingSession(requests.Session):
    """Keeps the last answer, or why there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: requests.Response | None = None
        self.failure = ""
        self.trust_env = False  # no proxy, and no password of ~/.netrc

    def forget(self) -> None:
        self.answer, self.failure = None, ""

    def request(self, *arguments: Any, **others: Any) -> requests.Response:
        self.forget()
        try:
            self.answer = super().request(*arguments, **others)
        except requests.RequestException as error:
            self.failure = str(error)
            raise
        return self.answer
