"""Sends syslog over TCP or TLS so that the end of a connection acknowledges what was sent on it.

Syslog has no acknowledgement, and what TCP acknowledges is in the receiver's kernel, unread. So a connection
carries one group of messages. We close our direction, and wait until the receiver closes its own:

- TCP: it closes after it has read the end. Where it ends before it has read all, its kernel resets the
  connection instead (RFC 2525, section 2.17; Linux, ``__tcp_close``), and the group is sent again.
- TLS: it answers our ``close_notify`` by its own (RFC 5425, section 4.4), after it has read all before it. A
  process that is killed sends none.

It does not show that the receiver has stored what it has read.
"""

import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import SplitResult

from nodeagent.export.connection import SetupError, TlsFiles, checked_url, tls_context
from nodeagent.export.records import ExportRecord
from nodeagent.export.retries import TAKEN, Outcome, SendResult
from nodeagent.export.syslog import counted, message

_PORTS: Final = {"tcp": 601, "tls": 6514}
"""``syslog-conn`` and ``syslog-tls`` in IANA's list."""

MOST_TOGETHER: Final = 64


def syslog_url(text: str, tls: TlsFiles) -> SplitResult:
    """Raises ``SetupError``."""
    url = checked_url(text, _PORTS)
    if tls and url.scheme == "tcp":
        raise SetupError(f"--ca, --cert and --key are for tls, and {text} is not encrypted")
    return url


class SyslogDestination:
    """``timeout_s`` is for each step: the connection, each write, and the receiver's end."""

    def __init__(
        self, url: SplitResult, *, tls: TlsFiles, facility: int, data_id: str, timeout_s: float
    ) -> None:
        self.most = MOST_TOGETHER
        self._address = (url.hostname or "", url.port or _PORTS[url.scheme])
        self._context = tls_context(tls) if url.scheme == "tls" else None
        self._facility = facility
        self._data_id = data_id
        self._timeout_s = timeout_s

    def send(self, records: Sequence[ExportRecord]) -> SendResult:
        group = b"".join(counted(message(each, self._facility, self._data_id)) for each in records)
        try:
            with socket.create_connection(self._address, self._timeout_s) as connection:
                if self._context is None:
                    _send(connection, group)
                else:
                    self._send_encrypted(self._context, connection, group)
        except ssl.SSLCertVerificationError as error:
            return SendResult(outcome=Outcome.MISCONFIGURED, reason=f"certificate: {error.verify_message}")
        except TimeoutError:
            return SendResult(outcome=Outcome.FAILED, reason=f"no answer within {self._timeout_s:g} s")
        except OSError as error:
            return SendResult(outcome=Outcome.FAILED, reason=f"connection: {error.strerror or error}")
        return TAKEN

    def close(self) -> None:
        """Between two groups there is no connection."""

    def _send_encrypted(self, context: ssl.SSLContext, connection: socket.socket, group: bytes) -> None:
        encrypted = context.wrap_socket(connection, server_hostname=self._address[0])
        with encrypted:
            encrypted.sendall(group)
            with suppress(ssl.SSLZeroReturnError):  # the receiver was the first to end it
                encrypted.unwrap()


def _send(connection: socket.socket, group: bytes) -> None:
    """Raises ``OSError`` where the receiver has not read all."""
    connection.sendall(group)
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(4096):
        pass  # it has nothing to tell us; its end counts
