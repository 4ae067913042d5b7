"""One request and its reply, as values. ``http.server`` of the standard library parses the one and writes the
other, both in memory.

Every reply, also a refusal, has the headers by which a browser runs only our own script, sends our pages to
no other site, and shows them in no other site's frame.
"""

import io
import logging
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

MAX_PARAMETERS: Final = 8
VERSIONS: Final = ("HTTP/1.0", "HTTP/1.1")

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Connection": "close",
}
"""No Strict-Transport-Security: a browser would apply it to all other ports of the host too (RFC 6797,
section 8.3).
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReply:
    """``stream`` follows the body where it is not None; the sender closes it."""

    status: HTTPStatus
    content_type: str = "text/plain; charset=utf-8"
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncGenerator[bytes, None] | None = None


class PageRequest(BaseHTTPRequestHandler):
    """A complete head. ``refusal`` is what is sent for one that is no sound request, else None. ``place`` is
    the path and ``parameters`` what follows ``?``, without what is given twice.
    """

    protocol_version = "HTTP/1.1"

    def __init__(self, head: bytes) -> None:
        self.client_address = ("", 0)
        self.rfile = io.BytesIO(head)
        self.wfile = self._written = io.BytesIO()
        self.raw_requestline = self.rfile.readline()
        self.refusal: bytes | None = b""
        self.place = ""
        self.parameters: Mapping[str, str] = {}
        if not self.parse_request():
            return
        if self.request_version in VERSIONS:
            self._split()
        else:
            self.send_error(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)

    def _split(self) -> None:
        try:
            parts = urlsplit(self.path)
            given = parse_qs(parts.query, max_num_fields=MAX_PARAMETERS, errors="strict")
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        self.refusal = None
        self.place = parts.path
        self.parameters = {name: values[0] for name, values in given.items() if len(values) == 1}

    def written(self, reply: PageReply) -> bytes:
        """The reply as it is sent, without its stream. HEAD has no body."""
        self._written.seek(0)
        self._written.truncate()
        self.request_version = self.protocol_version  # to one of HTTP/0.9 it would write no headers
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        if reply.stream is None:
            self.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self._written.write(reply.body)
        return self._written.getvalue()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Also what ``parse_request`` calls."""
        status = HTTPStatus(code)
        reason = message or explain or status.description or status.phrase
        self.refusal = self.written(PageReply(status=status, body=f"{status.phrase}: {reason}\n".encode()))

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def version_string(self) -> str:
        """Without versions: a reply to anyone shows less of what to attack."""
        return "nodeagent"

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 # http.server's name
        _log.debug("page: " + format, *arguments)
