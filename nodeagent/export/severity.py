"""How severe an event is to a person who is on call, in the numbers that each form has for it.

The rule is that of the journal (``nodeagent.journal.priority``), so that a site sees one severity in both.
"""

from enum import Enum
from typing import Final

from nodeagent.messages.pb import types_pb2


class LogSeverity(Enum):
    """(number of syslog, RFC 5424 section 6.2.1; number of OpenTelemetry; its short text).

    OpenTelemetry's numbers are those that its logs data model gives for syslog (appendix B).
    """

    ERROR = (3, 17, "ERROR")
    WARNING = (4, 13, "WARN")
    NOTICE = (5, 10, "INFO2")
    INFO = (6, 9, "INFO")

    @property
    def syslog(self) -> int:
        return self.value[0]

    @property
    def opentelemetry(self) -> int:
        return self.value[1]

    @property
    def text(self) -> str:
        return self.value[2]


_BY_VERDICT: Final = {
    types_pb2.VERDICT_ISOLATE: LogSeverity.ERROR,
    types_pb2.VERDICT_NO_NEW_JOBS: LogSeverity.WARNING,
    types_pb2.VERDICT_UNKNOWN: LogSeverity.WARNING,
}
_QUIET: Final = frozenset(
    {
        types_pb2.EVENT_KIND_CLEARED,
        types_pb2.EVENT_KIND_RELEASED,
        types_pb2.EVENT_KIND_SOURCE_BACK,
        types_pb2.EVENT_KIND_DEVICE_SEEN,
    }
)


def severity_of(event: types_pb2.Event) -> LogSeverity:
    """By the verdict after it; a fault that ended, and a rehearsal, only inform."""
    if event.kind in _QUIET or event.injected:
        return LogSeverity.INFO
    if event.code:
        return _BY_VERDICT.get(event.verdict, LogSeverity.NOTICE)
    is_of_verdict = event.kind == types_pb2.EVENT_KIND_VERDICT_CHANGED
    return _BY_VERDICT.get(event.verdict, LogSeverity.INFO) if is_of_verdict else LogSeverity.INFO
