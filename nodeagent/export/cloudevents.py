"""CloudEvents 1.0 over HTTP: a record as JSON, in structured mode, or several as a batch.

A dict of a dozen keys is made here in place of the SDK, which would bring a date library to each node. Each
request is signed again, so that a late attempt is not refused as an old one.
"""

import http.client
import json
import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import SplitResult, quote

import nodeagent
from nodeagent.export.connection import HttpConnection, TlsFiles
from nodeagent.export.records import RESYNC, ExportRecord
from nodeagent.export.retries import SendOutcome, SendResult, http_result
from nodeagent.export.signatures import signature_headers

_ONE: Final = "application/cloudevents+json; charset=UTF-8"
_BATCH: Final = "application/cloudevents-batch+json; charset=UTF-8"

MEANINGS: Final = {
    "specversion": "`1.0`",
    "id": "the id of the record: `source` and `id` are the key",
    "source": "`/nodeagent/NODE`, the node's name",
    "type": "`nodeagent.event.KIND`; of a resync `nodeagent.resync`",
    "subject": "the name of the device; left out of a resync",
    "time": "when it happened",
    "datacontenttype": "`application/json`",
    "sequence": "extension: the number of the event with 20 digits, so that texts sort as numbers do",
    "partitionkey": "extension: the name of the node, which keeps its events in order in a Kafka topic",
    "severitytext": "extension: `ERROR`, `WARN`, `INFO2` or `INFO`",
    "severitynumber": "extension: the same as OpenTelemetry's number",
    "nodeid": "extension: the machine-id of the node",
    "data": "what `nodeagent events -o json` prints",
}
"""The attributes, in the order in which they are sent."""


def cloud_event(record: ExportRecord) -> dict[str, Any]:
    """Attributes without a value are left out."""
    kind = RESYNC if record.kind == RESYNC else f"event.{record.kind}"
    event = {
        "specversion": "1.0",
        "id": record.id,
        "source": f"/nodeagent/{quote(record.node, safe='')}",
        "type": f"nodeagent.{kind}",
        "subject": record.device,
        "time": record.time,
        "datacontenttype": "application/json",
        "sequence": f"{record.position.seq:020}",
        "partitionkey": record.node,
        "severitytext": record.severity.text,
        "severitynumber": record.severity.opentelemetry,
        "nodeid": record.node_id,
        "data": record.data,
    }
    return {name: value for name, value in event.items() if value != ""}


class CloudEventsDestination:
    """``most`` above 1 makes batches, which not every receiver takes."""

    def __init__(
        self,
        url: SplitResult,
        *,
        tls: TlsFiles,
        headers: dict[str, str],
        secrets: Sequence[bytes],
        timeout_s: float,
        most: int,
    ) -> None:
        self.most = most
        self._connection = HttpConnection(url, tls, timeout_s)
        self._headers = {"User-Agent": f"nodeagent/{nodeagent.__version__}", **headers}
        self._secrets = tuple(secrets)

    def send(self, records: Sequence[ExportRecord]) -> SendResult:
        events = [cloud_event(record) for record in records]
        body = json.dumps(events if self.most > 1 else events[0], separators=(",", ":")).encode()
        now_s = time.time()
        headers = {
            **self._headers,
            "Content-Type": _BATCH if self.most > 1 else _ONE,
            **signature_headers(self._secrets, _message_id(records), int(now_s), body),
        }
        try:
            answer = self._connection.post(body, headers)
        except (OSError, http.client.HTTPException) as error:
            return SendResult(
                outcome=SendOutcome.FAILED, reason=f"no answer: {str(error) or type(error).__name__}"
            )
        return http_result(answer.status, answer.reason, answer.retry_after, now_s)

    def close(self) -> None:
        self._connection.close()


def _message_id(records: Sequence[ExportRecord]) -> str:
    """The same each time that the same records are sent."""
    first, last = records[0], records[-1]
    return first.id if first is last else f"{first.id}-{last.position.seq}"
